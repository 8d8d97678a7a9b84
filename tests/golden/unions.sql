# UNION ALL adds the deltas
SELECT k, x FROM r UNION ALL SELECT k, g FROM t
---
mode: incremental
columns: k, x
operator: UNION ALL | linear | the deltas of both sides
reads: r delta, t delta
WITH `block_delta` AS (
  SELECT
    `r`.`k` AS `k`,
    `r`.`x` AS `x`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
), `block_delta_2` AS (
  SELECT
    `t`.`k` AS `k`,
    `t`.`g` AS `g`,
    `t`.`_count`,
    `t`.`_csn`
  FROM `t@delta` AS `t`
), `union_delta` AS (
  SELECT
    `k` AS `k`,
    `x` AS `x`,
    `_count`,
    `_csn`
  FROM `block_delta`
  UNION ALL
  SELECT
    `k` AS `k`,
    `g` AS `x`,
    `_count`,
    `_csn`
  FROM `block_delta_2`
)
SELECT
  `k`,
  `x`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `union_delta`
GROUP BY
  `k`,
  `x`,
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# a side that did not move still gives its types
# motion: s=none
SELECT k AS v FROM r UNION ALL SELECT y FROM s
---
mode: incremental
columns: v
operator: UNION ALL | linear | the deltas of both sides
reads: r delta, s old
WITH `block_delta` AS (
  SELECT
    `r`.`k` AS `v`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
), `block_old` AS (
  SELECT
    `s`.`y` AS `y`,
    `s`.`_count` AS `_count`
  FROM `s@old` AS `s`
), `union_delta` AS (
  SELECT
    `v` AS `v`,
    `_count`,
    `_csn`
  FROM `block_delta`
  UNION ALL
  SELECT
    `y` AS `v`,
    `_count`,
    CAST(0 AS BIGINT) AS `_csn`
  FROM `block_old`
  WHERE
    FALSE
)
SELECT
  `v`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `union_delta`
GROUP BY
  `v`,
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# UNION removes duplicates
SELECT k FROM r UNION SELECT k FROM s
---
mode: summary
columns: k
operator: DISTINCT | linear | rows with their counts
operator: UNION ALL | linear | the deltas of both sides
reads: r delta, s delta
groups: k int, _rv_rows bigint
WITH `block_delta` AS (
  SELECT
    `r`.`k` AS `k`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
), `block_delta_2` AS (
  SELECT
    `s`.`k` AS `k`,
    `s`.`_count`,
    `s`.`_csn`
  FROM `s@delta` AS `s`
), `union_delta` AS (
  SELECT
    `k` AS `k`,
    `_count`,
    `_csn`
  FROM `block_delta`
  UNION ALL
  SELECT
    `k` AS `k`,
    `_count`,
    `_csn`
  FROM `block_delta_2`
), `totals` AS (
  SELECT
    `k`,
    `_csn`,
    COALESCE(SUM(`_count`), CAST(0 AS BIGINT)) AS `_rv_rows`
  FROM `union_delta`
  GROUP BY
    `k`,
    `_csn`
), `increments` AS (
  SELECT
    `k`,
    `_rv_rows`,
    `_csn`
  FROM `totals`
  WHERE
    `_rv_rows` <> 0
), `held` AS (
  SELECT /*+ BROADCAST(i) */
    `h`.`k`,
    `h`.`_rv_rows`
  FROM `_rv_groups@old` AS `h`
  JOIN (
    SELECT DISTINCT
      `k`
    FROM `increments`
  ) AS i
    ON `h`.`k` IS NOT DISTINCT FROM `i`.`k`
), `running` AS (
  SELECT
    `k`,
    CAST(SUM(`_rv_rows`) OVER (PARTITION BY `k` ORDER BY `_csn` ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS `_rv_rows`,
    `_csn` AS `_rv_at`,
    LEAD(`_csn`) OVER (PARTITION BY `k` ORDER BY `_csn`) AS `_rv_until`
  FROM (
    SELECT
      `k`,
      `_rv_rows`,
      `_csn`
    FROM (
      SELECT
        `k`,
        `_rv_rows`,
        `_csn`
      FROM `increments`
      UNION ALL
      SELECT
        `k`,
        `_rv_rows`,
        CAST(0 AS BIGINT) AS `_csn`
      FROM `held`
    ) AS u
  ) AS s
)
SELECT
  `k`,
  `_rv_rows`,
  `_count`,
  CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END AS `_csn`
FROM (
  SELECT
    `k`,
    `_rv_rows`,
    `_rv_at`,
    `_rv_until`,
    EXPLODE(ARRAY(CAST(1 AS BIGINT), CAST(-1 AS BIGINT))) AS `_count`
  FROM `running`
) AS t
WHERE
  CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END > 0 AND `_rv_rows` <> 0
===
# three sides, the last with duplicates removed
# no sql
SELECT k FROM r UNION ALL SELECT k FROM s UNION SELECT k FROM t
---
mode: summary
columns: k
operator: DISTINCT | linear | rows with their counts
operator: UNION ALL | linear | the deltas of both sides
operator: UNION ALL | linear | the deltas of both sides
reads: r delta, s delta, t delta
groups: k int, _rv_rows bigint
===
# a union below a join
# no sql
SELECT u.k, t.z FROM (SELECT k FROM r UNION ALL SELECT k FROM s) AS u JOIN t ON t.k = u.k
---
mode: incremental
columns: k, z
operator: join of u, t | linear | 2 terms, one per input
operator: UNION ALL | linear | the deltas of both sides
term: u | kept | starts at the delta
term: t | kept | starts at the delta
reads: r delta, r old, s delta, s old, t delta, t old
===
# a distinct union below a join
# no sql
SELECT u.k, t.z FROM (SELECT k FROM r UNION SELECT k FROM s) AS u JOIN t ON t.k = u.k
---
mode: incremental
columns: k, z
operator: join of u, t | linear | 2 terms, one per input
operator: DISTINCT | keyed | each touched row is looked at again
operator: UNION ALL | linear | the deltas of both sides
term: u | kept | starts at the delta
term: t | kept | starts at the delta
reads: r delta, r old, s delta, s old, t delta, t old
===
# parentheses and an order that means nothing
# no sql
(SELECT k FROM r ORDER BY k) UNION ALL (SELECT k FROM s)
---
mode: incremental
columns: k
operator: UNION ALL | linear | the deltas of both sides
reads: r delta, s delta
===
# DISTINCT over DISTINCT
# no sql
SELECT DISTINCT k FROM (SELECT DISTINCT k, g FROM r) AS q
---
mode: summary
columns: k
operator: DISTINCT | linear | rows with their counts
operator: DISTINCT | keyed | each touched row is looked at again
reads: r delta, r old
groups: k int, _rv_rows bigint
===
# the first side names the columns
# no sql
SELECT k AS a, g AS b FROM r UNION ALL SELECT g AS b, k AS a FROM t
---
mode: incremental
columns: a, b
operator: UNION ALL | linear | the deltas of both sides
reads: r delta, t delta
===
# columns that meet by name
# no sql
SELECT k, g FROM r UNION ALL BY NAME SELECT g, k FROM t
---
mode: whole
columns: k, g
operator: query | whole | UNION (line 1): columns that meet by name have no incremental rule yet
===
# EXCEPT ALL
SELECT k FROM r EXCEPT ALL SELECT k FROM s
---
mode: incremental
columns: k
operator: EXCEPT ALL | keyed | each touched row is counted again on both sides
reads: r delta, r old, s delta, s old
WITH `block_old` AS (
  SELECT
    `r`.`k` AS `k`,
    `r`.`_count` AS `_count`
  FROM `r@old` AS `r`
), `block_delta` AS (
  SELECT
    `r`.`k` AS `k`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
), `block_delta_2` AS (
  SELECT
    `s`.`k` AS `k`,
    `s`.`_count`,
    `s`.`_csn`
  FROM `s@delta` AS `s`
), `touched` AS (
  SELECT DISTINCT
    `k` AS `_rv_key0`
  FROM `block_delta`
  UNION ALL
  SELECT DISTINCT
    `k` AS `_rv_key0`
  FROM `block_delta_2`
), `block_old_2` AS (
  SELECT
    `s`.`k` AS `k`,
    `s`.`_count` AS `_count`
  FROM `s@old` AS `s`
), `running` AS (
  SELECT
    `k`,
    `_rv_count0`,
    `_rv_count1`,
    `_csn`,
    SUM(`_rv_count0`) OVER (PARTITION BY `k` ORDER BY `_csn` ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS `_rv_now0`,
    SUM(`_rv_count1`) OVER (PARTITION BY `k` ORDER BY `_csn` ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS `_rv_now1`
  FROM (
    SELECT
      `k`,
      SUM(`_rv_count0`) AS `_rv_count0`,
      SUM(`_rv_count1`) AS `_rv_count1`,
      `_csn`
    FROM (
      SELECT
        `k` AS `k`,
        `_count` AS `_rv_count0`,
        CAST(0 AS BIGINT) AS `_rv_count1`,
        `_csn`
      FROM (
        SELECT /*+ BROADCAST(m) */
          `s`.`k`,
          `s`.`_count`,
          CAST(0 AS BIGINT) AS `_csn`
        FROM `block_old` AS `s`
        LEFT SEMI JOIN `touched` AS `m`
          ON `s`.`k` IS NOT DISTINCT FROM `m`.`_rv_key0`
        UNION ALL
        SELECT
          `k`,
          `_count`,
          `_csn`
        FROM `block_delta`
      ) AS t
      UNION ALL
      SELECT
        `k` AS `k`,
        CAST(0 AS BIGINT) AS `_rv_count0`,
        `_count` AS `_rv_count1`,
        `_csn`
      FROM (
        SELECT /*+ BROADCAST(m) */
          `s`.`k`,
          `s`.`_count`,
          CAST(0 AS BIGINT) AS `_csn`
        FROM `block_old_2` AS `s`
        LEFT SEMI JOIN `touched` AS `m`
          ON `s`.`k` IS NOT DISTINCT FROM `m`.`_rv_key0`
        UNION ALL
        SELECT
          `k`,
          `_count`,
          `_csn`
        FROM `block_delta_2`
      ) AS t
    ) AS e
    GROUP BY
      `k`,
      `_csn`
  ) AS n
), `setoperation_delta` AS (
  SELECT
    `k`,
    `_count`,
    `_csn`
  FROM (
    SELECT
      `k`,
      CASE WHEN `_rv_change` > 0 THEN CAST(1 AS BIGINT) ELSE CAST(-1 AS BIGINT) END AS `_count`,
      `_csn`,
      EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(ABS(`_rv_change`) AS BIGINT))) AS `_rv_copy`
    FROM (
      SELECT
        `k`,
        `_csn`,
        GREATEST(`_rv_now0` - `_rv_now1`, CAST(0 AS BIGINT)) - GREATEST(
          (
            `_rv_now0` - `_rv_count0`
          ) - (
            `_rv_now1` - `_rv_count1`
          ),
          CAST(0 AS BIGINT)
        ) AS `_rv_change`
      FROM `running`
      WHERE
        `_csn` > 0
    ) AS c
    WHERE
      `_rv_change` <> 0
  ) AS d
)
SELECT
  `k`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `setoperation_delta`
GROUP BY
  `k`,
  `_csn`
HAVING
  SUM(`_count`) <> 0

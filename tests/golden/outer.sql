# LEFT JOIN by one key
SELECT r.k, r.x, s.y FROM r LEFT JOIN s ON r.k = s.k
---
mode: incremental
columns: k, x, y
operator: LEFT JOIN | keyed | the rows of each touched key are joined again (r.k = s.k)
reads: r delta, r old, s delta, s old
WITH `block_delta` AS (
  SELECT
    `r`.`k` AS `l1_1_k`,
    `r`.`x` AS `l1_2_x`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
), `block_delta_2` AS (
  SELECT
    `s`.`k` AS `r1_1_k`,
    `s`.`y` AS `r1_2_y`,
    `s`.`_count`,
    `s`.`_csn`
  FROM `s@delta` AS `s`
), `touched` AS (
  SELECT DISTINCT
    `l1_1_k` AS `_rv_key0`,
    `_csn`
  FROM `block_delta`
  UNION ALL
  SELECT DISTINCT
    `r1_1_k` AS `_rv_key0`,
    `_csn`
  FROM `block_delta_2`
), `times` AS (
  SELECT DISTINCT
    `_rv_key0`,
    `_csn`
  FROM (
    SELECT
      `_rv_key0`,
      EXPLODE(ARRAY(`_csn`, CAST(0 AS BIGINT))) AS `_csn`
    FROM `touched`
  ) AS u
), `moments` AS (
  SELECT
    `_rv_key0`,
    `_csn` AS `_rv_at`,
    LEAD(`_csn`) OVER (PARTITION BY `_rv_key0` ORDER BY `_csn`) AS `_rv_until`
  FROM `times`
), `leaf_timed` AS (
  SELECT
    `k`,
    `x`,
    `_count`,
    CAST(0 AS BIGINT) AS `_csn`
  FROM `r@old`
  UNION ALL
  SELECT
    `k`,
    `x`,
    `_count`,
    `_csn`
  FROM `r@delta`
), `block_timed` AS (
  SELECT
    `r`.`k` AS `l1_1_k`,
    `r`.`x` AS `l1_2_x`,
    `r`.`_count` AS `_count`,
    `r`.`_csn` AS `_csn`
  FROM `leaf_timed` AS `r`
), `at_moments` AS (
  SELECT
    `l1_1_k`,
    `l1_2_x`,
    `_rv_at`,
    `_rv_until`
  FROM (
    SELECT
      `l1_1_k`,
      `l1_2_x`,
      `_rv_at`,
      `_rv_until`,
      EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(`_count` AS BIGINT))) AS `_rv_copy`
    FROM (
      SELECT /*+ BROADCAST(m) */
        `s`.`l1_1_k`,
        `s`.`l1_2_x`,
        SUM(`s`.`_count`) AS `_count`,
        `m`.`_rv_at`,
        `m`.`_rv_until`
      FROM `block_timed` AS `s`
      JOIN `moments` AS `m`
        ON `s`.`l1_1_k` IS NOT DISTINCT FROM `m`.`_rv_key0` AND `s`.`_csn` <= `m`.`_rv_at`
      GROUP BY
        `s`.`l1_1_k`,
        `s`.`l1_2_x`,
        `m`.`_rv_at`,
        `m`.`_rv_until`
    ) AS n
    WHERE
      `_count` > 0
  ) AS c
), `leaf_timed_2` AS (
  SELECT
    `k`,
    `y`,
    `_count`,
    CAST(0 AS BIGINT) AS `_csn`
  FROM `s@old`
  UNION ALL
  SELECT
    `k`,
    `y`,
    `_count`,
    `_csn`
  FROM `s@delta`
), `block_timed_2` AS (
  SELECT
    `s`.`k` AS `r1_1_k`,
    `s`.`y` AS `r1_2_y`,
    `s`.`_count` AS `_count`,
    `s`.`_csn` AS `_csn`
  FROM `leaf_timed_2` AS `s`
), `at_moments_2` AS (
  SELECT
    `r1_1_k`,
    `r1_2_y`,
    `_rv_at`,
    `_rv_until`
  FROM (
    SELECT
      `r1_1_k`,
      `r1_2_y`,
      `_rv_at`,
      `_rv_until`,
      EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(`_count` AS BIGINT))) AS `_rv_copy`
    FROM (
      SELECT /*+ BROADCAST(m) */
        `s`.`r1_1_k`,
        `s`.`r1_2_y`,
        SUM(`s`.`_count`) AS `_count`,
        `m`.`_rv_at`,
        `m`.`_rv_until`
      FROM `block_timed_2` AS `s`
      JOIN `moments` AS `m`
        ON `s`.`r1_1_k` IS NOT DISTINCT FROM `m`.`_rv_key0` AND `s`.`_csn` <= `m`.`_rv_at`
      GROUP BY
        `s`.`r1_1_k`,
        `s`.`r1_2_y`,
        `m`.`_rv_at`,
        `m`.`_rv_until`
    ) AS n
    WHERE
      `_count` > 0
  ) AS c
), `result` AS (
  SELECT
    `l`.`l1_1_k`,
    `l`.`l1_2_x`,
    `r`.`r1_1_k`,
    `r`.`r1_2_y`,
    COALESCE(`l`.`_rv_at`, `r`.`_rv_at`) AS `_rv_at`,
    COALESCE(`l`.`_rv_until`, `r`.`_rv_until`) AS `_rv_until`
  FROM `at_moments` AS `l`
  LEFT JOIN `at_moments_2` AS `r`
    ON `l`.`l1_1_k` = `r`.`r1_1_k` AND `l`.`_rv_at` IS NOT DISTINCT FROM `r`.`_rv_at`
), `outerjoin_delta` AS (
  SELECT
    `l1_1_k`,
    `l1_2_x`,
    `r1_1_k`,
    `r1_2_y`,
    `_count`,
    CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END AS `_csn`
  FROM (
    SELECT
      `l1_1_k`,
      `l1_2_x`,
      `r1_1_k`,
      `r1_2_y`,
      `_rv_at`,
      `_rv_until`,
      EXPLODE(ARRAY(CAST(1 AS BIGINT), CAST(-1 AS BIGINT))) AS `_count`
    FROM `result`
  ) AS t
  WHERE
    CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END > 0
), `block_delta_3` AS (
  SELECT
    `j1`.`l1_1_k` AS `k`,
    `j1`.`l1_2_x` AS `x`,
    `j1`.`r1_2_y` AS `y`,
    `j1`.`_count`,
    `j1`.`_csn`
  FROM `outerjoin_delta` AS `j1`
)
SELECT
  `k`,
  `x`,
  `y`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta_3`
GROUP BY
  `k`,
  `x`,
  `y`,
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# LEFT JOIN when only the left side moved
# motion: s=none
SELECT r.k, s.y FROM r LEFT JOIN s ON r.k = s.k
---
mode: incremental
columns: k, y
operator: LEFT JOIN | keyed | the rows of each touched key are joined again (r.k = s.k)
reads: r delta, r old, s old
WITH `block_delta` AS (
  SELECT
    `r`.`k` AS `l1_1_k`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
), `block_old` AS (
  SELECT
    `s`.`k` AS `r1_1_k`,
    `s`.`y` AS `r1_2_y`,
    `s`.`_count` AS `_count`
  FROM `s@old` AS `s`
), `touched` AS (
  SELECT DISTINCT
    `l1_1_k` AS `_rv_key0`,
    `_csn`
  FROM `block_delta`
  UNION ALL
  SELECT
    `r1_1_k` AS `_rv_key0`,
    CAST(0 AS BIGINT) AS `_csn`
  FROM `block_old`
  WHERE
    FALSE
), `times` AS (
  SELECT DISTINCT
    `_rv_key0`,
    `_csn`
  FROM (
    SELECT
      `_rv_key0`,
      EXPLODE(ARRAY(`_csn`, CAST(0 AS BIGINT))) AS `_csn`
    FROM `touched`
  ) AS u
), `moments` AS (
  SELECT
    `_rv_key0`,
    `_csn` AS `_rv_at`,
    LEAD(`_csn`) OVER (PARTITION BY `_rv_key0` ORDER BY `_csn`) AS `_rv_until`
  FROM `times`
), `leaf_timed` AS (
  SELECT
    `k`,
    `_count`,
    CAST(0 AS BIGINT) AS `_csn`
  FROM `r@old`
  UNION ALL
  SELECT
    `k`,
    `_count`,
    `_csn`
  FROM `r@delta`
), `block_timed` AS (
  SELECT
    `r`.`k` AS `l1_1_k`,
    `r`.`_count` AS `_count`,
    `r`.`_csn` AS `_csn`
  FROM `leaf_timed` AS `r`
), `at_moments` AS (
  SELECT
    `l1_1_k`,
    `_rv_at`,
    `_rv_until`
  FROM (
    SELECT
      `l1_1_k`,
      `_rv_at`,
      `_rv_until`,
      EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(`_count` AS BIGINT))) AS `_rv_copy`
    FROM (
      SELECT /*+ BROADCAST(m) */
        `s`.`l1_1_k`,
        SUM(`s`.`_count`) AS `_count`,
        `m`.`_rv_at`,
        `m`.`_rv_until`
      FROM `block_timed` AS `s`
      JOIN `moments` AS `m`
        ON `s`.`l1_1_k` IS NOT DISTINCT FROM `m`.`_rv_key0` AND `s`.`_csn` <= `m`.`_rv_at`
      GROUP BY
        `s`.`l1_1_k`,
        `m`.`_rv_at`,
        `m`.`_rv_until`
    ) AS n
    WHERE
      `_count` > 0
  ) AS c
), `leaf_timed_2` AS (
  SELECT
    `k`,
    `y`,
    `_count`,
    CAST(0 AS BIGINT) AS `_csn`
  FROM `s@old`
), `block_timed_2` AS (
  SELECT
    `s`.`k` AS `r1_1_k`,
    `s`.`y` AS `r1_2_y`,
    `s`.`_count` AS `_count`,
    `s`.`_csn` AS `_csn`
  FROM `leaf_timed_2` AS `s`
), `at_moments_2` AS (
  SELECT
    `r1_1_k`,
    `r1_2_y`,
    `_rv_at`,
    `_rv_until`
  FROM (
    SELECT
      `r1_1_k`,
      `r1_2_y`,
      `_rv_at`,
      `_rv_until`,
      EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(`_count` AS BIGINT))) AS `_rv_copy`
    FROM (
      SELECT /*+ BROADCAST(m) */
        `s`.`r1_1_k`,
        `s`.`r1_2_y`,
        SUM(`s`.`_count`) AS `_count`,
        `m`.`_rv_at`,
        `m`.`_rv_until`
      FROM `block_timed_2` AS `s`
      JOIN `moments` AS `m`
        ON `s`.`r1_1_k` IS NOT DISTINCT FROM `m`.`_rv_key0` AND `s`.`_csn` <= `m`.`_rv_at`
      GROUP BY
        `s`.`r1_1_k`,
        `s`.`r1_2_y`,
        `m`.`_rv_at`,
        `m`.`_rv_until`
    ) AS n
    WHERE
      `_count` > 0
  ) AS c
), `result` AS (
  SELECT
    `l`.`l1_1_k`,
    `r`.`r1_1_k`,
    `r`.`r1_2_y`,
    COALESCE(`l`.`_rv_at`, `r`.`_rv_at`) AS `_rv_at`,
    COALESCE(`l`.`_rv_until`, `r`.`_rv_until`) AS `_rv_until`
  FROM `at_moments` AS `l`
  LEFT JOIN `at_moments_2` AS `r`
    ON `l`.`l1_1_k` = `r`.`r1_1_k` AND `l`.`_rv_at` IS NOT DISTINCT FROM `r`.`_rv_at`
), `outerjoin_delta` AS (
  SELECT
    `l1_1_k`,
    `r1_1_k`,
    `r1_2_y`,
    `_count`,
    CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END AS `_csn`
  FROM (
    SELECT
      `l1_1_k`,
      `r1_1_k`,
      `r1_2_y`,
      `_rv_at`,
      `_rv_until`,
      EXPLODE(ARRAY(CAST(1 AS BIGINT), CAST(-1 AS BIGINT))) AS `_count`
    FROM `result`
  ) AS t
  WHERE
    CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END > 0
), `block_delta_2` AS (
  SELECT
    `j1`.`l1_1_k` AS `k`,
    `j1`.`r1_2_y` AS `y`,
    `j1`.`_count`,
    `j1`.`_csn`
  FROM `outerjoin_delta` AS `j1`
)
SELECT
  `k`,
  `y`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta_2`
GROUP BY
  `k`,
  `y`,
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# RIGHT JOIN
# no sql
SELECT r.x, s.k, s.y FROM r RIGHT JOIN s ON r.k = s.k
---
mode: incremental
columns: x, k, y
operator: RIGHT JOIN | keyed | the rows of each touched key are joined again (r.k = s.k)
reads: r delta, r old, s delta, s old
===
# FULL JOIN with USING
# no sql
SELECT k, x, y FROM r FULL JOIN s USING (k)
---
mode: incremental
columns: k, x, y
operator: expressions | linear | row by row
operator: FULL JOIN | keyed | the rows of each touched key are joined again (r.k = s.k)
reads: r delta, r old, s delta, s old
===
# two keys
# no sql
SELECT r.x, t.z FROM r LEFT JOIN t ON r.k = t.k AND r.g = t.g
---
mode: incremental
columns: x, z
operator: LEFT JOIN | keyed | the rows of each touched key are joined again (r.k = t.k, r.g = t.g)
reads: r delta, r old, t delta, t old
===
# a key of two columns that is declared
# no sql
SELECT o.x, l.n FROM o LEFT JOIN l ON o.a = l.a AND o.b = l.b
---
mode: incremental
columns: x, n
operator: LEFT JOIN | keyed | the rows of each touched key are joined again (o.a = l.a, o.b = l.b)
reads: l delta, l old, o delta, o old
===
# a further condition on one side
# no sql
SELECT r.k, s.y FROM r LEFT JOIN s ON r.k = s.k AND s.y > 0 AND r.x IS NOT NULL
---
mode: incremental
columns: k, y
operator: LEFT JOIN | keyed | the rows of each touched key are joined again (r.k = s.k)
reads: r delta, r old, s delta, s old
===
# an expression as key
# no sql
SELECT r.k, s.y FROM r LEFT JOIN s ON r.k + 1 = s.k
---
mode: incremental
columns: k, y
operator: LEFT JOIN | keyed | the rows of each touched key are joined again (r.k + 1 = s.k)
operator: expressions | linear | row by row
reads: r delta, r old, s delta, s old
===
# a null-safe key
# no sql
SELECT r.k, s.y FROM r FULL JOIN s ON r.k <=> s.k
---
mode: incremental
columns: k, y
operator: FULL JOIN | keyed | the rows of each touched key are joined again (r.k = s.k)
reads: r delta, r old, s delta, s old
===
# a condition that never holds
# no sql
SELECT r.k, s.y FROM r LEFT JOIN s ON r.k = s.k AND FALSE
---
mode: incremental
columns: k, y
operator: LEFT JOIN | keyed | the rows of each touched key are joined again (r.k = s.k)
reads: r delta, r old, s delta, s old
===
# two outer joins in a row
# no sql
SELECT r.k, s.y, t.z FROM r LEFT JOIN s ON r.k = s.k LEFT JOIN t ON t.k = s.k
---
mode: incremental
columns: k, y, z
operator: LEFT JOIN | keyed | the rows of each touched key are joined again (s.k = t.k)
operator: LEFT JOIN | keyed | the rows of each touched key are joined again (r.k = s.k)
reads: r delta, r old, s delta, s old, t delta, t old
===
# an inner join after an outer one
# no sql
SELECT r.k, s.y, t.z FROM r LEFT JOIN s ON r.k = s.k JOIN t ON t.k = r.k
---
mode: incremental
columns: k, y, z
operator: join of j1, t | linear | 2 terms, one per input
operator: LEFT JOIN | keyed | the rows of each touched key are joined again (r.k = s.k)
term: j1 | kept | starts at the delta
term: t | kept | starts at the delta
reads: r delta, r old, s delta, s old, t delta, t old
===
# an outer join after an inner one
# no sql
SELECT r.k, s.y, t.z FROM r JOIN s ON r.k = s.k FULL JOIN t ON t.k = r.k
---
mode: incremental
columns: k, y, z
operator: FULL JOIN | keyed | the rows of each touched key are joined again (r.k = t.k)
operator: join of r, s | linear | 2 terms, one per input
term: r | kept | starts at the delta
term: s | kept | starts at the delta
reads: r delta, r old, s delta, s old, t delta, t old
===
# rows that found no partner
# no sql
SELECT r.k FROM r LEFT JOIN s ON r.k = s.k WHERE s.k IS NULL
---
mode: incremental
columns: k
operator: WHERE s.k IS NULL | linear | row by row
operator: LEFT JOIN | keyed | the rows of each touched key are joined again (r.k = s.k)
reads: r delta, r old, s delta, s old
===
# totals over an outer join
# no sql
SELECT r.g, COUNT(s.y) AS n, SUM(s.y) AS total FROM r LEFT JOIN s ON r.k = s.k GROUP BY r.g
---
mode: summary
columns: g, n, total
operator: GROUP BY r.g | linear | accumulators per group for COUNT(s.y), SUM(s.y)
operator: LEFT JOIN | keyed | the rows of each touched key are joined again (r.k = s.k)
reads: r delta, r old, s delta, s old
groups: k1 int, _rv_rows bigint, _rv_n1 bigint, _rv_s2 decimal(38,2)
===
# an outer join of a table with itself
# no sql
SELECT a.k, b.x FROM r AS a LEFT JOIN r AS b ON a.k = b.g
---
mode: incremental
columns: k, x
operator: LEFT JOIN | keyed | the rows of each touched key are joined again (a.k = b.g)
reads: r delta, r old
===
# an outer join over a subquery that aggregates
# no sql
SELECT p.id, q.n FROM p LEFT JOIN (SELECT pid, COUNT(*) AS n FROM c GROUP BY pid) AS q ON p.id = q.pid
---
mode: incremental
columns: id, n
operator: LEFT JOIN | keyed | the rows of each touched key are joined again (p.id = q.pid)
operator: GROUP BY c.pid | keyed | each touched group is aggregated again: below another operator, where no groups are stored
reads: c delta, c old, p delta, p old
===
# a negative zero keeps its sign
# no sql
SELECT r.k, CAST(t.z AS STRING) AS spelled FROM r LEFT JOIN t ON r.k = t.k
---
mode: incremental
columns: k, spelled
operator: expressions | linear | row by row
operator: LEFT JOIN | keyed | the rows of each touched key are joined again (r.k = t.k)
reads: r delta, r old, t delta, t old

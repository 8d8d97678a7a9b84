# LEFT SEMI JOIN by one key
SELECT r.k, r.x FROM r LEFT SEMI JOIN s ON r.k = s.k
---
mode: incremental
columns: k, x
operator: LEFT SEMI JOIN | keyed | the rows of each touched key are looked at again (r.k = s.k)
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
    `_count`,
    CAST(0 AS BIGINT) AS `_csn`
  FROM `s@old`
  UNION ALL
  SELECT
    `k`,
    `_count`,
    `_csn`
  FROM `s@delta`
), `block_timed_2` AS (
  SELECT
    `s`.`k` AS `r1_1_k`,
    `s`.`_count` AS `_count`,
    `s`.`_csn` AS `_csn`
  FROM `leaf_timed_2` AS `s`
), `at_moments_2` AS (
  SELECT
    `r1_1_k`,
    `_rv_at`,
    `_rv_until`
  FROM (
    SELECT
      `r1_1_k`,
      `_rv_at`,
      `_rv_until`,
      EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(`_count` AS BIGINT))) AS `_rv_copy`
    FROM (
      SELECT /*+ BROADCAST(m) */
        `s`.`r1_1_k`,
        SUM(`s`.`_count`) AS `_count`,
        `m`.`_rv_at`,
        `m`.`_rv_until`
      FROM `block_timed_2` AS `s`
      JOIN `moments` AS `m`
        ON `s`.`r1_1_k` IS NOT DISTINCT FROM `m`.`_rv_key0` AND `s`.`_csn` <= `m`.`_rv_at`
      GROUP BY
        `s`.`r1_1_k`,
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
    `l`.`_rv_at`,
    `l`.`_rv_until`
  FROM `at_moments` AS `l`
  LEFT SEMI JOIN `at_moments_2` AS `r`
    ON `l`.`l1_1_k` = `r`.`r1_1_k` AND `l`.`_rv_at` IS NOT DISTINCT FROM `r`.`_rv_at`
), `semijoin_delta` AS (
  SELECT
    `l1_1_k`,
    `l1_2_x`,
    `_count`,
    CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END AS `_csn`
  FROM (
    SELECT
      `l1_1_k`,
      `l1_2_x`,
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
    `j1`.`_count`,
    `j1`.`_csn`
  FROM `semijoin_delta` AS `j1`
)
SELECT
  `k`,
  `x`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta_3`
GROUP BY
  `k`,
  `x`,
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# LEFT ANTI JOIN by one key
# motion: r=none
SELECT r.k, r.x FROM r LEFT ANTI JOIN s ON r.k = s.k
---
mode: incremental
columns: k, x
operator: LEFT ANTI JOIN | keyed | the rows of each touched key are looked at again (r.k = s.k)
reads: r old, s delta, s old
WITH `block_old` AS (
  SELECT
    `r`.`k` AS `l1_1_k`,
    `r`.`x` AS `l1_2_x`,
    `r`.`_count` AS `_count`
  FROM `r@old` AS `r`
), `block_delta` AS (
  SELECT
    `s`.`k` AS `r1_1_k`,
    `s`.`_count`,
    `s`.`_csn`
  FROM `s@delta` AS `s`
), `touched` AS (
  SELECT
    `l1_1_k` AS `_rv_key0`,
    CAST(0 AS BIGINT) AS `_csn`
  FROM `block_old`
  WHERE
    FALSE
  UNION ALL
  SELECT DISTINCT
    `r1_1_k` AS `_rv_key0`,
    `_csn`
  FROM `block_delta`
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
    `_count`,
    CAST(0 AS BIGINT) AS `_csn`
  FROM `s@old`
  UNION ALL
  SELECT
    `k`,
    `_count`,
    `_csn`
  FROM `s@delta`
), `block_timed_2` AS (
  SELECT
    `s`.`k` AS `r1_1_k`,
    `s`.`_count` AS `_count`,
    `s`.`_csn` AS `_csn`
  FROM `leaf_timed_2` AS `s`
), `at_moments_2` AS (
  SELECT
    `r1_1_k`,
    `_rv_at`,
    `_rv_until`
  FROM (
    SELECT
      `r1_1_k`,
      `_rv_at`,
      `_rv_until`,
      EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(`_count` AS BIGINT))) AS `_rv_copy`
    FROM (
      SELECT /*+ BROADCAST(m) */
        `s`.`r1_1_k`,
        SUM(`s`.`_count`) AS `_count`,
        `m`.`_rv_at`,
        `m`.`_rv_until`
      FROM `block_timed_2` AS `s`
      JOIN `moments` AS `m`
        ON `s`.`r1_1_k` IS NOT DISTINCT FROM `m`.`_rv_key0` AND `s`.`_csn` <= `m`.`_rv_at`
      GROUP BY
        `s`.`r1_1_k`,
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
    `l`.`_rv_at`,
    `l`.`_rv_until`
  FROM `at_moments` AS `l`
  LEFT ANTI JOIN `at_moments_2` AS `r`
    ON `l`.`l1_1_k` = `r`.`r1_1_k` AND `l`.`_rv_at` IS NOT DISTINCT FROM `r`.`_rv_at`
), `semijoin_delta` AS (
  SELECT
    `l1_1_k`,
    `l1_2_x`,
    `_count`,
    CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END AS `_csn`
  FROM (
    SELECT
      `l1_1_k`,
      `l1_2_x`,
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
    `j1`.`l1_2_x` AS `x`,
    `j1`.`_count`,
    `j1`.`_csn`
  FROM `semijoin_delta` AS `j1`
)
SELECT
  `k`,
  `x`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta_2`
GROUP BY
  `k`,
  `x`,
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# SEMI JOIN and ANTI JOIN are the left ones
# no sql
SELECT r.k, r.w FROM r SEMI JOIN s ON r.k = s.k ANTI JOIN t ON r.g = t.g
---
mode: incremental
columns: k, w
operator: LEFT ANTI JOIN | keyed | the rows of each touched key are looked at again (r.g = t.g)
operator: LEFT SEMI JOIN | keyed | the rows of each touched key are looked at again (r.k = s.k)
reads: r delta, r old, s delta, s old, t delta, t old
===
# a semi join that compares an expression, and more than its key
# no sql
SELECT r.x FROM r LEFT SEMI JOIN s ON r.k + 1 = s.k AND s.y > 1 AND r.w = s.w
---
mode: incremental
columns: x
operator: LEFT SEMI JOIN | keyed | the rows of each touched key are looked at again (r.k + 1 = s.k, r.w = s.w)
operator: expressions | linear | row by row
reads: r delta, r old, s delta, s old
===
# an anti join by <=>, where NULL finds NULL
# no sql
SELECT r.* FROM r LEFT ANTI JOIN t ON r.g <=> t.g
---
mode: incremental
columns: k, g, x, w
operator: LEFT ANTI JOIN | keyed | the rows of each touched key are looked at again (r.g = t.g)
reads: r delta, r old, t delta, t old
===
# an anti join over a join, under GROUP BY
# no sql
SELECT r.g, COUNT(*) AS n, MAX(t.z) AS z FROM r JOIN t ON r.k = t.k LEFT ANTI JOIN s ON s.k = r.g GROUP BY r.g
---
mode: incremental
columns: g, n, z
operator: GROUP BY r.g | keyed | each touched group is aggregated again: MAX is not linear
operator: LEFT ANTI JOIN | keyed | the rows of each touched key are looked at again (r.g = s.k)
operator: join of r, t | linear | 2 terms, one per input
term: r | kept | starts at the delta
term: t | kept | starts at the delta
reads: r delta, r old, s delta, s old, t delta, t old
===
# a semi join with a query, under DISTINCT and UNION ALL
# no sql
SELECT DISTINCT r.g FROM r LEFT SEMI JOIN (SELECT g, COUNT(*) AS n FROM t GROUP BY g) AS q ON q.g = r.g AND q.n > 1
UNION ALL
SELECT k FROM s
---
mode: incremental
columns: g
operator: UNION ALL | linear | the deltas of both sides
operator: DISTINCT | keyed | each touched row is looked at again
operator: LEFT SEMI JOIN | keyed | the rows of each touched key are looked at again (r.g = q.g)
operator: GROUP BY t.g | keyed | each touched group is aggregated again: below another operator, where no groups are stored
reads: r delta, r old, s delta, t delta, t old
===
# rows that a LEFT JOIN pads, kept where a semi join finds them
# no sql
SELECT r.k, s.y FROM r LEFT JOIN s ON r.k = s.k LEFT SEMI JOIN t ON t.k = r.k WHERE r.x > 0
---
mode: incremental
columns: k, y
operator: WHERE r.x > 0 | linear | row by row
operator: LEFT SEMI JOIN | keyed | the rows of each touched key are looked at again (r.k = t.k)
operator: LEFT JOIN | keyed | the rows of each touched key are joined again (r.k = s.k)
reads: r delta, r old, s delta, s old, t delta, t old
===
# a semi join along a foreign key
# no sql
SELECT c.id, c.x FROM c LEFT SEMI JOIN p ON c.pid = p.id AND p.g = 1
---
mode: incremental
columns: id, x
operator: LEFT SEMI JOIN | keyed | the rows of each touched key are looked at again (c.pid = p.id)
reads: c delta, c old, p delta, p old
===
# IN a subquery
SELECT k FROM r WHERE k IN (SELECT k FROM s)
---
mode: incremental
columns: k
operator: LEFT SEMI JOIN | keyed | the rows of each touched key are looked at again (r.k = s.k)
reads: r delta, r old, s delta, s old
WITH `block_delta` AS (
  SELECT
    `r`.`k` AS `l1_1_k`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
), `block_delta_2` AS (
  SELECT
    `s`.`k` AS `r1_1_k`,
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
    `_count`,
    CAST(0 AS BIGINT) AS `_csn`
  FROM `s@old`
  UNION ALL
  SELECT
    `k`,
    `_count`,
    `_csn`
  FROM `s@delta`
), `block_timed_2` AS (
  SELECT
    `s`.`k` AS `r1_1_k`,
    `s`.`_count` AS `_count`,
    `s`.`_csn` AS `_csn`
  FROM `leaf_timed_2` AS `s`
), `at_moments_2` AS (
  SELECT
    `r1_1_k`,
    `_rv_at`,
    `_rv_until`
  FROM (
    SELECT
      `r1_1_k`,
      `_rv_at`,
      `_rv_until`,
      EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(`_count` AS BIGINT))) AS `_rv_copy`
    FROM (
      SELECT /*+ BROADCAST(m) */
        `s`.`r1_1_k`,
        SUM(`s`.`_count`) AS `_count`,
        `m`.`_rv_at`,
        `m`.`_rv_until`
      FROM `block_timed_2` AS `s`
      JOIN `moments` AS `m`
        ON `s`.`r1_1_k` IS NOT DISTINCT FROM `m`.`_rv_key0` AND `s`.`_csn` <= `m`.`_rv_at`
      GROUP BY
        `s`.`r1_1_k`,
        `m`.`_rv_at`,
        `m`.`_rv_until`
    ) AS n
    WHERE
      `_count` > 0
  ) AS c
), `result` AS (
  SELECT
    `l`.`l1_1_k`,
    `l`.`_rv_at`,
    `l`.`_rv_until`
  FROM `at_moments` AS `l`
  LEFT SEMI JOIN `at_moments_2` AS `r`
    ON `l`.`l1_1_k` = `r`.`r1_1_k` AND `l`.`_rv_at` IS NOT DISTINCT FROM `r`.`_rv_at`
), `semijoin_delta` AS (
  SELECT
    `l1_1_k`,
    `_count`,
    CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END AS `_csn`
  FROM (
    SELECT
      `l1_1_k`,
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
    `j1`.`_count`,
    `j1`.`_csn`
  FROM `semijoin_delta` AS `j1`
)
SELECT
  `k`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta_3`
GROUP BY
  `k`,
  `_csn`
HAVING
  SUM(`_count`) <> 0

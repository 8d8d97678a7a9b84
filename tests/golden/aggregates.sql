# MIN and MAX are recomputed for touched groups
SELECT g, MIN(x) AS low, MAX(x) AS high FROM r GROUP BY g
---
mode: incremental
columns: g, low, high
operator: GROUP BY r.g | keyed | each touched group is aggregated again: MIN is not linear
reads: r delta, r old
WITH `block_delta` AS (
  SELECT
    `r`.`g` AS `k1`,
    `r`.`x` AS `a1`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
), `touched` AS (
  SELECT DISTINCT
    `k1` AS `_rv_key0`,
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
    `g`,
    `x`,
    `_count`,
    CAST(0 AS BIGINT) AS `_csn`
  FROM `r@old`
  UNION ALL
  SELECT
    `g`,
    `x`,
    `_count`,
    `_csn`
  FROM `r@delta`
), `block_timed` AS (
  SELECT
    `r`.`g` AS `k1`,
    `r`.`x` AS `a1`,
    `r`.`_count` AS `_count`,
    `r`.`_csn` AS `_csn`
  FROM `leaf_timed` AS `r`
), `at_moments` AS (
  SELECT
    `k1`,
    `a1`,
    `_rv_at`,
    `_rv_until`
  FROM (
    SELECT
      `k1`,
      `a1`,
      `_rv_at`,
      `_rv_until`,
      EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(`_count` AS BIGINT))) AS `_rv_copy`
    FROM (
      SELECT /*+ BROADCAST(m) */
        `s`.`k1`,
        `s`.`a1`,
        SUM(`s`.`_count`) AS `_count`,
        `m`.`_rv_at`,
        `m`.`_rv_until`
      FROM `block_timed` AS `s`
      JOIN `moments` AS `m`
        ON `s`.`k1` IS NOT DISTINCT FROM `m`.`_rv_key0` AND `s`.`_csn` <= `m`.`_rv_at`
      GROUP BY
        `s`.`k1`,
        `s`.`a1`,
        `m`.`_rv_at`,
        `m`.`_rv_until`
    ) AS n
    WHERE
      `_count` > 0
  ) AS c
), `result` AS (
  SELECT
    `k1`,
    MIN(`a1`) AS `v1`,
    MAX(`a1`) AS `v2`,
    `_rv_at`,
    `_rv_until`
  FROM `at_moments`
  GROUP BY
    `k1`,
    `_rv_at`,
    `_rv_until`
), `aggregate_delta` AS (
  SELECT
    `k1`,
    `v1`,
    `v2`,
    `_count`,
    CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END AS `_csn`
  FROM (
    SELECT
      `k1`,
      `v1`,
      `v2`,
      `_rv_at`,
      `_rv_until`,
      EXPLODE(ARRAY(CAST(1 AS BIGINT), CAST(-1 AS BIGINT))) AS `_count`
    FROM `result`
  ) AS t
  WHERE
    CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END > 0
), `block_delta_2` AS (
  SELECT
    `g`.`k1` AS `g`,
    `g`.`v1` AS `low`,
    `g`.`v2` AS `high`,
    `g`.`_count`,
    `g`.`_csn`
  FROM `aggregate_delta` AS `g`
)
SELECT
  `g`,
  `low`,
  `high`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta_2`
GROUP BY
  `g`,
  `low`,
  `high`,
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# COUNT DISTINCT
# no sql
SELECT g, COUNT(DISTINCT x) AS n FROM r GROUP BY g
---
mode: incremental
columns: g, n
operator: GROUP BY r.g | keyed | each touched group is aggregated again: DISTINCT inside an aggregate is not linear
reads: r delta, r old
===
# COUNT DISTINCT of two columns
# no sql
SELECT COUNT(DISTINCT k, g) AS n FROM r
---
mode: incremental
columns: n
operator: grand total | keyed | each touched group is aggregated again: DISTINCT inside an aggregate is not linear
reads: r delta, r old
===
# SUM DISTINCT
# no sql
SELECT g, SUM(DISTINCT x) AS total FROM r GROUP BY g
---
mode: incremental
columns: g, total
operator: GROUP BY r.g | keyed | each touched group is aggregated again: DISTINCT inside an aggregate is not linear
reads: r delta, r old
===
# one that is not linear takes the others with it
# no sql
SELECT g, SUM(x) AS total, MAX(x) AS high FROM r GROUP BY g
---
mode: incremental
columns: g, total, high
operator: GROUP BY r.g | keyed | each touched group is aggregated again: MAX is not linear
reads: r delta, r old
===
# a grand total that is not linear has its one row even without rows
SELECT MAX(x) AS high, COUNT(*) AS n FROM r
---
mode: incremental
columns: high, n
operator: grand total | keyed | each touched group is aggregated again: MAX is not linear
reads: r delta, r old
WITH `block_delta` AS (
  SELECT
    `r`.`x` AS `a1`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
), `touched` AS (
  SELECT DISTINCT
    `_csn`
  FROM `block_delta`
), `times` AS (
  SELECT DISTINCT
    `_csn`
  FROM (
    SELECT
      EXPLODE(ARRAY(`_csn`, CAST(0 AS BIGINT))) AS `_csn`
    FROM `touched`
  ) AS u
), `moments` AS (
  SELECT
    `_csn` AS `_rv_at`,
    LEAD(`_csn`) OVER (ORDER BY `_csn`) AS `_rv_until`
  FROM `times`
), `leaf_timed` AS (
  SELECT
    `x`,
    `_count`,
    CAST(0 AS BIGINT) AS `_csn`
  FROM `r@old`
  UNION ALL
  SELECT
    `x`,
    `_count`,
    `_csn`
  FROM `r@delta`
), `block_timed` AS (
  SELECT
    `r`.`x` AS `a1`,
    `r`.`_count` AS `_count`,
    `r`.`_csn` AS `_csn`
  FROM `leaf_timed` AS `r`
), `at_moments` AS (
  SELECT
    `a1`,
    `_rv_at`,
    `_rv_until`
  FROM (
    SELECT
      `a1`,
      `_rv_at`,
      `_rv_until`,
      EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(`_count` AS BIGINT))) AS `_rv_copy`
    FROM (
      SELECT /*+ BROADCAST(m) */
        `s`.`a1`,
        SUM(`s`.`_count`) AS `_count`,
        `m`.`_rv_at`,
        `m`.`_rv_until`
      FROM `block_timed` AS `s`
      JOIN `moments` AS `m`
        ON `s`.`_csn` <= `m`.`_rv_at`
      GROUP BY
        `s`.`a1`,
        `m`.`_rv_at`,
        `m`.`_rv_until`
    ) AS n
    WHERE
      `_count` > 0
  ) AS c
), `result` AS (
  SELECT
    MAX(`a1`) FILTER(WHERE
      `_rv_present`) AS `v1`,
    COUNT(*) FILTER(WHERE
      `_rv_present`) AS `v2`,
    `m`.`_rv_at`,
    `m`.`_rv_until`
  FROM `moments` AS `m`
  LEFT JOIN (
    SELECT
      `a1`,
      `_rv_at`,
      TRUE AS `_rv_present`
    FROM `at_moments`
  ) AS s
    ON `m`.`_rv_at` IS NOT DISTINCT FROM `s`.`_rv_at`
  GROUP BY
    `m`.`_rv_at`,
    `m`.`_rv_until`
), `aggregate_delta` AS (
  SELECT
    `v1`,
    `v2`,
    `_count`,
    CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END AS `_csn`
  FROM (
    SELECT
      `v1`,
      `v2`,
      `_rv_at`,
      `_rv_until`,
      EXPLODE(ARRAY(CAST(1 AS BIGINT), CAST(-1 AS BIGINT))) AS `_count`
    FROM `result`
  ) AS t
  WHERE
    CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END > 0
), `block_delta_2` AS (
  SELECT
    `g`.`v1` AS `high`,
    `g`.`v2` AS `n`,
    `g`.`_count`,
    `g`.`_csn`
  FROM `aggregate_delta` AS `g`
)
SELECT
  `high`,
  `n`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta_2`
GROUP BY
  `high`,
  `n`,
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# an aggregate below a join
# no sql
SELECT r.k, q.total FROM r JOIN (SELECT k, SUM(y) AS total FROM s GROUP BY k) AS q ON r.k = q.k
---
mode: incremental
columns: k, total
operator: join of r, q | linear | 2 terms, one per input
operator: GROUP BY s.k | keyed | each touched group is aggregated again: below another operator, where no groups are stored
term: r | kept | starts at the delta
term: q | kept | starts at the delta
reads: r delta, r old, s delta, s old
===
# a grand total beside rows
# no sql
SELECT r.k, q.total FROM r CROSS JOIN (SELECT SUM(y) AS total FROM s) AS q
---
mode: incremental
columns: k, total
operator: join of r, q | linear | 2 terms, one per input
operator: grand total | keyed | each touched group is aggregated again: below another operator, where no groups are stored
term: r | kept | starts at the delta
term: q | kept | starts at the delta
reads: r delta, r old, s delta, s old
===
# variance of doubles is recomputed
# no sql
SELECT g, VARIANCE(z) AS v FROM t GROUP BY g
---
mode: whole
columns: g, v
operator: query | whole | VARIANCE: its last digits depend on the order of adding, and its sums are not stored here
===
# a sum of doubles beside a maximum is recomputed
# no sql
SELECT g, MAX(k) AS m, SUM(z) AS s FROM t GROUP BY g
---
mode: whole
columns: g, m, s
operator: query | whole | SUM: its last digits depend on the order of adding, and its sums are not stored here
===
# a sum of doubles below a join is recomputed
# no sql
SELECT r.k, q.s FROM r JOIN (SELECT g, SUM(z) AS s FROM t GROUP BY g) AS q ON q.g = r.g
---
mode: whole
columns: k, s
operator: query | whole | SUM: its last digits depend on the order of adding, and its sums are not stored here
===
# FILTER over MAX
# no sql
SELECT g, MAX(x) FILTER (WHERE k > 1) AS high FROM r GROUP BY g
---
mode: incremental
columns: g, high
operator: GROUP BY r.g | keyed | each touched group is aggregated again: MAX is not linear
operator: expressions | linear | row by row
reads: r delta, r old
===
# MIN of dates and booleans
# no sql
SELECT k, MIN(d) AS first_day, MAX(f) AS ever FROM e GROUP BY k
---
mode: incremental
columns: k, first_day, ever
operator: GROUP BY e.k | keyed | each touched group is aggregated again: MIN is not linear
reads: e delta, e old
===
# DISTINCT below an aggregate
# no sql
SELECT MAX(k) AS high FROM (SELECT DISTINCT k, g FROM r) AS q
---
mode: incremental
columns: high
operator: grand total | keyed | each touched group is aggregated again: MAX is not linear
operator: DISTINCT | keyed | each touched row is looked at again
reads: r delta, r old
===
# HAVING over MAX
# no sql
SELECT g, COUNT(*) AS n FROM r GROUP BY g HAVING MAX(x) > 1
---
mode: incremental
columns: g, n
operator: HAVING MAX(r.x) > 1 | linear | row by row
operator: GROUP BY r.g | keyed | each touched group is aggregated again: MAX is not linear
reads: r delta, r old
===
# groups that may hold floating numbers are told apart by their spelling
SELECT g, m, n, c, f, e, a FROM (
  SELECT g, MAX(z) AS m, MAX(k) AS n, COUNT(z) AS c, MIN(z) FILTER (WHERE k > 0) AS f, MAX(k + 1) AS e, AVG(k) AS a
  FROM t GROUP BY g
) AS q WHERE c > 1
---
mode: incremental
columns: g, m, n, c, f, e, a
operator: WHERE q.c > 1 | linear | row by row
operator: GROUP BY t.g | keyed | each touched group is aggregated again: below another operator, where no groups are stored
operator: expressions | linear | row by row
reads: t delta, t old
WITH `block_delta` AS (
  SELECT
    `t`.`g` AS `k1`,
    `t`.`z` AS `a1`,
    `t`.`k` AS `a2`,
    `t`.`k` > 0 AS `a3`,
    `t`.`k` + 1 AS `a4`,
    `t`.`_count`,
    `t`.`_csn`
  FROM `t@delta` AS `t`
), `touched` AS (
  SELECT DISTINCT
    `k1` AS `_rv_key0`,
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
    `g`,
    `z`,
    `_count`,
    CAST(0 AS BIGINT) AS `_csn`
  FROM `t@old`
  UNION ALL
  SELECT
    `k`,
    `g`,
    `z`,
    `_count`,
    `_csn`
  FROM `t@delta`
), `block_timed` AS (
  SELECT
    `t`.`g` AS `k1`,
    `t`.`z` AS `a1`,
    `t`.`k` AS `a2`,
    `t`.`k` > 0 AS `a3`,
    `t`.`k` + 1 AS `a4`,
    `t`.`_count` AS `_count`,
    `t`.`_csn` AS `_csn`
  FROM `leaf_timed` AS `t`
), `at_moments` AS (
  SELECT
    `k1`,
    `a1`,
    `a2`,
    `a3`,
    `a4`,
    `_rv_at`,
    `_rv_until`
  FROM (
    SELECT
      `k1`,
      `a1`,
      `a2`,
      `a3`,
      `a4`,
      `_rv_at`,
      `_rv_until`,
      EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(`_count` AS BIGINT))) AS `_rv_copy`
    FROM (
      SELECT /*+ BROADCAST(m) */
        `s`.`k1`,
        ANY_VALUE(`s`.`a1`) AS `a1`,
        `s`.`a2`,
        `s`.`a3`,
        `s`.`a4`,
        SUM(`s`.`_count`) AS `_count`,
        `m`.`_rv_at`,
        `m`.`_rv_until`
      FROM `block_timed` AS `s`
      JOIN `moments` AS `m`
        ON `s`.`k1` IS NOT DISTINCT FROM `m`.`_rv_key0` AND `s`.`_csn` <= `m`.`_rv_at`
      GROUP BY
        `s`.`k1`,
        `s`.`a1`,
        `s`.`a2`,
        `s`.`a3`,
        `s`.`a4`,
        CAST(`s`.`a1` AS STRING),
        `m`.`_rv_at`,
        `m`.`_rv_until`
    ) AS n
    WHERE
      `_count` > 0
  ) AS c
), `result` AS (
  SELECT
    `k1`,
    MAX(`a1`) AS `v1`,
    MAX(`a2`) AS `v2`,
    COUNT(`a1`) AS `v3`,
    MIN(`a1`) FILTER(WHERE
      `a3`) AS `v4`,
    MAX(`a4`) AS `v5`,
    AVG(`a2`) AS `v6`,
    `_rv_at`,
    `_rv_until`
  FROM `at_moments`
  GROUP BY
    `k1`,
    `_rv_at`,
    `_rv_until`
), `aggregate_delta` AS (
  SELECT
    `k1`,
    `v1`,
    `v2`,
    `v3`,
    `v4`,
    `v5`,
    `v6`,
    `_count`,
    CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END AS `_csn`
  FROM (
    SELECT
      `k1`,
      `v1`,
      `v2`,
      `v3`,
      `v4`,
      `v5`,
      `v6`,
      `_rv_at`,
      `_rv_until`,
      EXPLODE(ARRAY(CAST(1 AS BIGINT), CAST(-1 AS BIGINT))) AS `_count`
    FROM `result`
  ) AS t
  WHERE
    CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END > 0
), `block_delta_2` AS (
  SELECT
    `g`.`k1` AS `g`,
    `g`.`v1` AS `m`,
    `g`.`v2` AS `n`,
    `g`.`v3` AS `c`,
    `g`.`v4` AS `f`,
    `g`.`v5` AS `e`,
    `g`.`v6` AS `a`,
    `g`.`_count`,
    `g`.`_csn`
  FROM `aggregate_delta` AS `g`
), `block_delta_3` AS (
  SELECT
    `q`.`g` AS `g`,
    `q`.`m` AS `m`,
    `q`.`n` AS `n`,
    `q`.`c` AS `c`,
    `q`.`f` AS `f`,
    `q`.`e` AS `e`,
    `q`.`a` AS `a`,
    `q`.`_count`,
    `q`.`_csn`
  FROM `block_delta_2` AS `q`
  WHERE
    `q`.`c` > 1
)
SELECT
  `g`,
  ANY_VALUE(`m`) AS `m`,
  `n`,
  `c`,
  ANY_VALUE(`f`) AS `f`,
  `e`,
  ANY_VALUE(`a`) AS `a`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta_3`
GROUP BY
  `g`,
  `m`,
  `n`,
  `c`,
  `f`,
  `e`,
  `a`,
  CAST(`m` AS STRING),
  CAST(`f` AS STRING),
  CAST(`a` AS STRING),
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# a total with a filter counts no row where there is none
SELECT n FROM (SELECT COUNT(*) FILTER (WHERE x IS NULL) AS n FROM r) AS q WHERE n >= 0
---
mode: incremental
columns: n
operator: WHERE q.n >= 0 | linear | row by row
operator: grand total | keyed | each touched group is aggregated again: below another operator, where no groups are stored
operator: expressions | linear | row by row
reads: r delta, r old
WITH `block_delta` AS (
  SELECT
    `r`.`x` IS NULL AS `a1`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
), `touched` AS (
  SELECT DISTINCT
    `_csn`
  FROM `block_delta`
), `times` AS (
  SELECT DISTINCT
    `_csn`
  FROM (
    SELECT
      EXPLODE(ARRAY(`_csn`, CAST(0 AS BIGINT))) AS `_csn`
    FROM `touched`
  ) AS u
), `moments` AS (
  SELECT
    `_csn` AS `_rv_at`,
    LEAD(`_csn`) OVER (ORDER BY `_csn`) AS `_rv_until`
  FROM `times`
), `leaf_timed` AS (
  SELECT
    `x`,
    `_count`,
    CAST(0 AS BIGINT) AS `_csn`
  FROM `r@old`
  UNION ALL
  SELECT
    `x`,
    `_count`,
    `_csn`
  FROM `r@delta`
), `block_timed` AS (
  SELECT
    `r`.`x` IS NULL AS `a1`,
    `r`.`_count` AS `_count`,
    `r`.`_csn` AS `_csn`
  FROM `leaf_timed` AS `r`
), `at_moments` AS (
  SELECT
    `a1`,
    `_rv_at`,
    `_rv_until`
  FROM (
    SELECT
      `a1`,
      `_rv_at`,
      `_rv_until`,
      EXPLODE(SEQUENCE(CAST(1 AS BIGINT), CAST(`_count` AS BIGINT))) AS `_rv_copy`
    FROM (
      SELECT /*+ BROADCAST(m) */
        `s`.`a1`,
        SUM(`s`.`_count`) AS `_count`,
        `m`.`_rv_at`,
        `m`.`_rv_until`
      FROM `block_timed` AS `s`
      JOIN `moments` AS `m`
        ON `s`.`_csn` <= `m`.`_rv_at`
      GROUP BY
        `s`.`a1`,
        `m`.`_rv_at`,
        `m`.`_rv_until`
    ) AS n
    WHERE
      `_count` > 0
  ) AS c
), `result` AS (
  SELECT
    COUNT(*) FILTER(WHERE
      `a1` AND `_rv_present`) AS `v1`,
    `m`.`_rv_at`,
    `m`.`_rv_until`
  FROM `moments` AS `m`
  LEFT JOIN (
    SELECT
      `a1`,
      `_rv_at`,
      TRUE AS `_rv_present`
    FROM `at_moments`
  ) AS s
    ON `m`.`_rv_at` IS NOT DISTINCT FROM `s`.`_rv_at`
  GROUP BY
    `m`.`_rv_at`,
    `m`.`_rv_until`
), `aggregate_delta` AS (
  SELECT
    `v1`,
    `_count`,
    CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END AS `_csn`
  FROM (
    SELECT
      `v1`,
      `_rv_at`,
      `_rv_until`,
      EXPLODE(ARRAY(CAST(1 AS BIGINT), CAST(-1 AS BIGINT))) AS `_count`
    FROM `result`
  ) AS t
  WHERE
    CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END > 0
), `block_delta_2` AS (
  SELECT
    `g`.`v1` AS `n`,
    `g`.`_count`,
    `g`.`_csn`
  FROM `aggregate_delta` AS `g`
), `block_delta_3` AS (
  SELECT
    `q`.`n` AS `n`,
    `q`.`_count`,
    `q`.`_csn`
  FROM `block_delta_2` AS `q`
  WHERE
    `q`.`n` >= 0
)
SELECT
  `n`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta_3`
GROUP BY
  `n`,
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# HAVING alone makes one group, which counts as one row
# no sql
SELECT COUNT(*) AS n, MAX(q.one) AS m FROM (SELECT 1 AS one FROM r HAVING TRUE) AS q JOIN s ON s.k = q.one
---
mode: incremental
columns: n, m
operator: grand total | keyed | each touched group is aggregated again: MAX is not linear
operator: join of q, s | linear | 2 terms, one per input
operator: HAVING TRUE | linear | row by row
operator: grand total | keyed | each touched group is aggregated again: below another operator, where no groups are stored
operator: expressions | linear | row by row
term: q | kept | starts at the delta
term: s | kept | starts at the delta
reads: r delta, r old, s delta, s old

# one table is read row by row
SELECT k, x + 1 AS y FROM r WHERE g > 0
---
mode: incremental
columns: k, y
operator: WHERE r.g > 0 | linear | row by row
reads: r delta
WITH `block_delta` AS (
  SELECT
    `r`.`k` AS `k`,
    `r`.`x` + 1 AS `y`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
  WHERE
    `r`.`g` > 0
)
SELECT
  `k`,
  `y`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta`
GROUP BY
  `k`,
  `y`,
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# an inner join has one term per table
SELECT r.k, r.x, s.y FROM r JOIN s ON r.k = s.k
---
mode: incremental
columns: k, x, y
operator: join of r, s | linear | 2 terms, one per input
term: r | kept | starts at the delta
term: s | kept | starts at the delta
reads: r delta, r old, s delta, s old
WITH `from_r` AS (
  SELECT
    `r`.`k` AS `r.k`,
    `r`.`x` AS `r.x`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
), `from_r_to_s` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`r.k`,
    `t`.`r.x`,
    `n`.`k` AS `s.k`,
    `n`.`y` AS `s.y`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    GREATEST(`t`.`_csn`, `n`.`_csn`) AS `_csn`
  FROM `from_r` AS `t`
  JOIN (
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
  ) AS n
    ON `t`.`r.k` = `n`.`k`
), `from_s` AS (
  SELECT
    `s`.`k` AS `s.k`,
    `s`.`y` AS `s.y`,
    `s`.`_count`,
    `s`.`_csn`
  FROM `s@delta` AS `s`
), `from_s_to_r` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`s.k`,
    `t`.`s.y`,
    `n`.`k` AS `r.k`,
    `n`.`x` AS `r.x`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    `t`.`_csn` AS `_csn`
  FROM `from_s` AS `t`
  JOIN `r@old` AS `n`
    ON `n`.`k` = `t`.`s.k`
), `terms` AS (
  SELECT
    `r.k`,
    `r.x`,
    `s.k`,
    `s.y`,
    `_count`,
    `_csn`
  FROM (
    SELECT
      `r.k`,
      `r.x`,
      `s.k`,
      `s.y`,
      `_count`,
      `_csn`
    FROM `from_r_to_s`
    UNION ALL
    SELECT
      `r.k`,
      `r.x`,
      `s.k`,
      `s.y`,
      `_count`,
      `_csn`
    FROM `from_s_to_r`
  ) AS u
), `block_delta` AS (
  SELECT
    `r.k` AS `k`,
    `r.x` AS `x`,
    `s.y` AS `y`,
    `_count`,
    `_csn`
  FROM `terms`
)
SELECT
  `k`,
  `x`,
  `y`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta`
GROUP BY
  `k`,
  `x`,
  `y`,
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# a table that did not move starts no term
# motion: s=none
SELECT r.k, r.x, s.y FROM r JOIN s ON r.k = s.k
---
mode: incremental
columns: k, x, y
operator: join of r, s | linear | 2 terms, one per input
term: r | kept | starts at the delta
reads: r delta, s old
WITH `from_r` AS (
  SELECT
    `r`.`k` AS `r.k`,
    `r`.`x` AS `r.x`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
), `from_r_to_s` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`r.k`,
    `t`.`r.x`,
    `n`.`k` AS `s.k`,
    `n`.`y` AS `s.y`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    `t`.`_csn` AS `_csn`
  FROM `from_r` AS `t`
  JOIN `s@old` AS `n`
    ON `t`.`r.k` = `n`.`k`
), `block_delta` AS (
  SELECT
    `r.k` AS `k`,
    `r.x` AS `x`,
    `s.y` AS `y`,
    `_count`,
    `_csn`
  FROM `from_r_to_s`
)
SELECT
  `k`,
  `x`,
  `y`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta`
GROUP BY
  `k`,
  `x`,
  `y`,
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# only the second table moved
# motion: r=none
SELECT r.k, r.x, s.y FROM r JOIN s ON r.k = s.k
---
mode: incremental
columns: k, x, y
operator: join of r, s | linear | 2 terms, one per input
term: s | kept | starts at the delta
reads: r old, s delta
WITH `from_s` AS (
  SELECT
    `s`.`k` AS `s.k`,
    `s`.`y` AS `s.y`,
    `s`.`_count`,
    `s`.`_csn`
  FROM `s@delta` AS `s`
), `from_s_to_r` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`s.k`,
    `t`.`s.y`,
    `n`.`k` AS `r.k`,
    `n`.`x` AS `r.x`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    `t`.`_csn` AS `_csn`
  FROM `from_s` AS `t`
  JOIN `r@old` AS `n`
    ON `n`.`k` = `t`.`s.k`
), `block_delta` AS (
  SELECT
    `r.k` AS `k`,
    `r.x` AS `x`,
    `s.y` AS `y`,
    `_count`,
    `_csn`
  FROM `from_s_to_r`
)
SELECT
  `k`,
  `x`,
  `y`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta`
GROUP BY
  `k`,
  `x`,
  `y`,
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# three tables join in the order in which conditions tie them
# no sql
SELECT r.k, s.y, t.z FROM r JOIN s ON r.k = s.k JOIN t ON t.g = r.g AND t.z > 0
---
mode: incremental
columns: k, y, z
operator: join of r, s, t | linear | 3 terms, one per input
term: r | kept | starts at the delta
term: s | kept | starts at the delta
term: t | kept | starts at the delta
reads: r delta, r old, s delta, s old, t delta, t old
===
# a comma and a condition below
# no sql
SELECT r.k, s.y FROM r, s WHERE r.k = s.k AND (r.g > 1 OR s.y < 0)
---
mode: incremental
columns: k, y
operator: join of r, s | linear | 2 terms, one per input
term: r | kept | starts at the delta
term: s | kept | starts at the delta
reads: r delta, r old, s delta, s old
===
# a cross join
# no sql
SELECT r.k, t.g FROM r CROSS JOIN t WHERE r.k IS NOT NULL
---
mode: incremental
columns: k, g
operator: join of r, t | linear | 2 terms, one per input
term: r | kept | starts at the delta
term: t | kept | starts at the delta
reads: r delta, r old, t delta, t old
===
# a join on an inequality
# no sql
SELECT r.k, t.z FROM r JOIN t ON r.k < t.k
---
mode: incremental
columns: k, z
operator: join of r, t | linear | 2 terms, one per input
term: r | kept | starts at the delta
term: t | kept | starts at the delta
reads: r delta, r old, t delta, t old
===
# a null-safe join
# no sql
SELECT r.k, s.y FROM r JOIN s ON r.k <=> s.k
---
mode: incremental
columns: k, y
operator: join of r, s | linear | 2 terms, one per input
term: r | kept | starts at the delta
term: s | kept | starts at the delta
reads: r delta, r old, s delta, s old
===
# USING shows the column once
# no sql
SELECT k, y, z FROM r JOIN s USING (k) JOIN t USING (k)
---
mode: incremental
columns: k, y, z
operator: join of r, s, t | linear | 3 terms, one per input
term: r | kept | starts at the delta
term: s | kept | starts at the delta
term: t | kept | starts at the delta
reads: r delta, r old, s delta, s old, t delta, t old
===
# NATURAL compares every column of the same name
# no sql
SELECT k, g, x, z FROM r NATURAL JOIN t
---
mode: incremental
columns: k, g, x, z
operator: join of r, t | linear | 2 terms, one per input
term: r | kept | starts at the delta
term: t | kept | starts at the delta
reads: r delta, r old, t delta, t old
===
# a star over USING begins with the compared column
# no sql
SELECT * FROM (SELECT x, k FROM r) AS l JOIN (SELECT y, k FROM s) AS m USING (k)
---
mode: incremental
columns: k, x, y
operator: join of l, m | linear | 2 terms, one per input
term: l | kept | starts at the delta
term: m | kept | starts at the delta
reads: r delta, r old, s delta, s old
===
# a self-join is two inputs
SELECT a.k, b.x FROM r AS a JOIN r AS b ON a.k = b.g
---
mode: incremental
columns: k, x
operator: join of a, b | linear | 2 terms, one per input
term: r | kept | starts at the delta
term: r | kept | starts at the delta
reads: r delta, r old
WITH `from_a` AS (
  SELECT
    `a`.`k` AS `a.k`,
    `a`.`_count`,
    `a`.`_csn`
  FROM `r@delta` AS `a`
), `from_a_to_b` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`a.k`,
    `n`.`g` AS `b.g`,
    `n`.`x` AS `b.x`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    GREATEST(`t`.`_csn`, `n`.`_csn`) AS `_csn`
  FROM `from_a` AS `t`
  JOIN (
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
  ) AS n
    ON `t`.`a.k` = `n`.`g`
), `from_b` AS (
  SELECT
    `b`.`g` AS `b.g`,
    `b`.`x` AS `b.x`,
    `b`.`_count`,
    `b`.`_csn`
  FROM `r@delta` AS `b`
), `from_b_to_a` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`b.g`,
    `t`.`b.x`,
    `n`.`k` AS `a.k`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    `t`.`_csn` AS `_csn`
  FROM `from_b` AS `t`
  JOIN `r@old` AS `n`
    ON `n`.`k` = `t`.`b.g`
), `terms` AS (
  SELECT
    `a.k`,
    `b.g`,
    `b.x`,
    `_count`,
    `_csn`
  FROM (
    SELECT
      `a.k`,
      `b.g`,
      `b.x`,
      `_count`,
      `_csn`
    FROM `from_a_to_b`
    UNION ALL
    SELECT
      `a.k`,
      `b.g`,
      `b.x`,
      `_count`,
      `_csn`
    FROM `from_b_to_a`
  ) AS u
), `block_delta` AS (
  SELECT
    `a.k` AS `k`,
    `b.x` AS `x`,
    `_count`,
    `_csn`
  FROM `terms`
)
SELECT
  `k`,
  `x`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta`
GROUP BY
  `k`,
  `x`,
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# a subquery in FROM becomes a block of its own
# no sql
SELECT q.a, s.y FROM (SELECT k AS a, x FROM r WHERE x > 0) AS q JOIN s ON q.a = s.k
---
mode: incremental
columns: a, y
operator: join of q, s | linear | 2 terms, one per input
operator: WHERE r.x > 0 | linear | row by row
term: q | kept | starts at the delta
term: s | kept | starts at the delta
reads: r delta, r old, s delta, s old
===
# a CTE read twice is written once
WITH big AS (SELECT k, x FROM r WHERE x > 1) SELECT a.k, b.x FROM big AS a JOIN big AS b ON a.k = b.k
---
mode: incremental
columns: k, x
operator: join of a, b | linear | 2 terms, one per input
operator: WHERE r.x > 1 | linear | row by row
operator: WHERE r.x > 1 | linear | row by row
term: a | kept | starts at the delta
term: b | kept | starts at the delta
reads: r delta, r old
WITH `block_delta` AS (
  SELECT
    `r`.`k` AS `k`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
  WHERE
    `r`.`x` > 1
), `from_a` AS (
  SELECT
    `a`.`k` AS `a.k`,
    `a`.`_count`,
    `a`.`_csn`
  FROM `block_delta` AS `a`
), `block_delta_2` AS (
  SELECT
    `r`.`k` AS `k`,
    `r`.`x` AS `x`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
  WHERE
    `r`.`x` > 1
), `block_old` AS (
  SELECT
    `r`.`k` AS `k`,
    `r`.`x` AS `x`,
    `r`.`_count` AS `_count`
  FROM `r@old` AS `r`
  WHERE
    `r`.`x` > 1
), `from_a_to_b` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`a.k`,
    `n`.`k` AS `b.k`,
    `n`.`x` AS `b.x`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    GREATEST(`t`.`_csn`, `n`.`_csn`) AS `_csn`
  FROM `from_a` AS `t`
  JOIN (
    SELECT
      `k`,
      `x`,
      `_count`,
      CAST(0 AS BIGINT) AS `_csn`
    FROM `block_old`
    UNION ALL
    SELECT
      `k`,
      `x`,
      `_count`,
      `_csn`
    FROM `block_delta_2`
  ) AS n
    ON `t`.`a.k` = `n`.`k`
), `from_b` AS (
  SELECT
    `b`.`k` AS `b.k`,
    `b`.`x` AS `b.x`,
    `b`.`_count`,
    `b`.`_csn`
  FROM `block_delta_2` AS `b`
), `block_old_2` AS (
  SELECT
    `r`.`k` AS `k`,
    `r`.`_count` AS `_count`
  FROM `r@old` AS `r`
  WHERE
    `r`.`x` > 1
), `from_b_to_a` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`b.k`,
    `t`.`b.x`,
    `n`.`k` AS `a.k`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    `t`.`_csn` AS `_csn`
  FROM `from_b` AS `t`
  JOIN `block_old_2` AS `n`
    ON `n`.`k` = `t`.`b.k`
), `terms` AS (
  SELECT
    `a.k`,
    `b.k`,
    `b.x`,
    `_count`,
    `_csn`
  FROM (
    SELECT
      `a.k`,
      `b.k`,
      `b.x`,
      `_count`,
      `_csn`
    FROM `from_a_to_b`
    UNION ALL
    SELECT
      `a.k`,
      `b.k`,
      `b.x`,
      `_count`,
      `_csn`
    FROM `from_b_to_a`
  ) AS u
), `block_delta_3` AS (
  SELECT
    `a.k` AS `k`,
    `b.x` AS `x`,
    `_count`,
    `_csn`
  FROM `terms`
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
# a CTE may be named like a table
# no sql
WITH r AS (SELECT k, x FROM r WHERE x > 1) SELECT r.k, s.y FROM r JOIN s ON r.k = s.k
---
mode: incremental
columns: k, y
operator: join of r, s | linear | 2 terms, one per input
operator: WHERE r.x > 1 | linear | row by row
term: r | kept | starts at the delta
term: s | kept | starts at the delta
reads: r delta, r old, s delta, s old
===
# an inner CTE hides an outer one
# no sql
WITH a AS (SELECT k FROM r), b AS (WITH a AS (SELECT k FROM s) SELECT k FROM a) SELECT a.k, b.k AS j FROM a, b
---
mode: incremental
columns: k, j
operator: join of a, b | linear | 2 terms, one per input
term: a | kept | starts at the delta
term: b | kept | starts at the delta
reads: r delta, r old, s delta, s old
===
# a CTE column list renames
# no sql
WITH z(b) AS (SELECT k FROM r) SELECT b FROM z
---
mode: incremental
columns: b
reads: r delta
===
# a lateral column alias is what it stands for
# no sql
SELECT k + 1 AS j, j * 2 AS h FROM r
---
mode: incremental
columns: j, h
operator: expressions | linear | row by row
reads: r delta
===
# a column comes before an alias of the same name
# no sql
SELECT k + 1 AS k, k * 10 AS j FROM r
---
mode: incremental
columns: k, j
operator: expressions | linear | row by row
reads: r delta
===
# names are compared without regard to case
# no sql
SELECT R.K AS Kk, Q.Y FROM R JOIN S AS q ON r.K = Q.k
---
mode: incremental
columns: Kk, Y
operator: join of r, q | linear | 2 terms, one per input
term: r | kept | starts at the delta
term: s | kept | starts at the delta
reads: r delta, r old, s delta, s old
===
# hostile names pass through
SELECT h.`a b`, h.`qu"ote` AS `it's`, h.`back``tick`, s.`Üñï` AS `x.y`, s.`GROUP` FROM `Order's ``table``@delta; DROP` AS h JOIN `select` AS s ON h.`do.t` = s.`from` AND h.`new
line` <=> s.`k@old`
---
mode: incremental
columns: a b, it's, back`tick, x.y, GROUP
operator: join of h, s | linear | 2 terms, one per input
term: Order's `table`@delta; DROP | kept | starts at the delta
term: select | kept | starts at the delta
reads: Order's `table`@delta; DROP delta, Order's `table`@delta; DROP old, select delta, select old
WITH `from_h` AS (
  SELECT
    `h`.`do.t` AS `h.do.t`,
    `h`.`new
line` AS `h.new
line`,
    `h`.`a b` AS `h.a b`,
    `h`.`qu"ote` AS `h.qu"ote`,
    `h`.`back``tick` AS `h.back``tick`,
    `h`.`_count`,
    `h`.`_csn`
  FROM `Order's ``table``@delta; DROP@delta` AS `h`
), `from_h_to_s` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`h.do.t`,
    `t`.`h.new
line`,
    `t`.`h.a b`,
    `t`.`h.qu"ote`,
    `t`.`h.back``tick`,
    `n`.`from` AS `s.from`,
    `n`.`k@old` AS `s.k@old`,
    `n`.`Üñï` AS `s.Üñï`,
    `n`.`GROUP` AS `s.GROUP`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    GREATEST(`t`.`_csn`, `n`.`_csn`) AS `_csn`
  FROM `from_h` AS `t`
  JOIN (
    SELECT
      `from`,
      `Üñï`,
      `k@old`,
      `GROUP`,
      `_count`,
      CAST(0 AS BIGINT) AS `_csn`
    FROM `select@old`
    UNION ALL
    SELECT
      `from`,
      `Üñï`,
      `k@old`,
      `GROUP`,
      `_count`,
      `_csn`
    FROM `select@delta`
  ) AS n
    ON `t`.`h.do.t` = `n`.`from`
    AND `t`.`h.new
line` IS NOT DISTINCT FROM `n`.`k@old`
), `from_s` AS (
  SELECT
    `s`.`from` AS `s.from`,
    `s`.`k@old` AS `s.k@old`,
    `s`.`Üñï` AS `s.Üñï`,
    `s`.`GROUP` AS `s.GROUP`,
    `s`.`_count`,
    `s`.`_csn`
  FROM `select@delta` AS `s`
), `from_s_to_h` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`s.from`,
    `t`.`s.k@old`,
    `t`.`s.Üñï`,
    `t`.`s.GROUP`,
    `n`.`do.t` AS `h.do.t`,
    `n`.`new
line` AS `h.new
line`,
    `n`.`a b` AS `h.a b`,
    `n`.`qu"ote` AS `h.qu"ote`,
    `n`.`back``tick` AS `h.back``tick`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    `t`.`_csn` AS `_csn`
  FROM `from_s` AS `t`
  JOIN `Order's ``table``@delta; DROP@old` AS `n`
    ON `n`.`do.t` = `t`.`s.from`
    AND `n`.`new
line` IS NOT DISTINCT FROM `t`.`s.k@old`
), `terms` AS (
  SELECT
    `h.do.t`,
    `h.new
line`,
    `h.a b`,
    `h.qu"ote`,
    `h.back``tick`,
    `s.from`,
    `s.k@old`,
    `s.Üñï`,
    `s.GROUP`,
    `_count`,
    `_csn`
  FROM (
    SELECT
      `h.do.t`,
      `h.new
line`,
      `h.a b`,
      `h.qu"ote`,
      `h.back``tick`,
      `s.from`,
      `s.k@old`,
      `s.Üñï`,
      `s.GROUP`,
      `_count`,
      `_csn`
    FROM `from_h_to_s`
    UNION ALL
    SELECT
      `h.do.t`,
      `h.new
line`,
      `h.a b`,
      `h.qu"ote`,
      `h.back``tick`,
      `s.from`,
      `s.k@old`,
      `s.Üñï`,
      `s.GROUP`,
      `_count`,
      `_csn`
    FROM `from_s_to_h`
  ) AS u
), `block_delta` AS (
  SELECT
    `h.a b` AS `a b`,
    `h.qu"ote` AS `it's`,
    `h.back``tick` AS `back``tick`,
    `s.Üñï` AS `x.y`,
    `s.GROUP` AS `GROUP`,
    `_count`,
    `_csn`
  FROM `terms`
)
SELECT
  `a b`,
  `it's`,
  `back``tick`,
  `x.y`,
  `GROUP`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta`
GROUP BY
  `a b`,
  `it's`,
  `back``tick`,
  `x.y`,
  `GROUP`,
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# the next table is one that an equality ties to those before it
# motion: s=none, t=none
SELECT r.x, t.z, s.w FROM r, s, t WHERE r.k = t.k AND t.g = s.k
---
mode: incremental
columns: x, z, w
operator: join of r, s, t | linear | 3 terms, one per input
term: r | kept | starts at the delta
reads: r delta, s old, t old
WITH `from_r` AS (
  SELECT
    `r`.`k` AS `r.k`,
    `r`.`x` AS `r.x`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
), `from_r_to_t` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`r.k`,
    `t`.`r.x`,
    `n`.`k` AS `t.k`,
    `n`.`g` AS `t.g`,
    `n`.`z` AS `t.z`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    `t`.`_csn` AS `_csn`
  FROM `from_r` AS `t`
  JOIN `t@old` AS `n`
    ON `t`.`r.k` = `n`.`k`
), `from_r_to_t_to_s` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`r.k`,
    `t`.`r.x`,
    `t`.`t.k`,
    `t`.`t.g`,
    `t`.`t.z`,
    `n`.`k` AS `s.k`,
    `n`.`w` AS `s.w`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    `t`.`_csn` AS `_csn`
  FROM `from_r_to_t` AS `t`
  JOIN `s@old` AS `n`
    ON `t`.`t.g` = `n`.`k`
), `block_delta` AS (
  SELECT
    `r.x` AS `x`,
    `t.z` AS `z`,
    `s.w` AS `w`,
    `_count`,
    `_csn`
  FROM `from_r_to_t_to_s`
)
SELECT
  `x`,
  ANY_VALUE(`z`) AS `z`,
  `w`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta`
GROUP BY
  `x`,
  `z`,
  `w`,
  CAST(`z` AS STRING),
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# two changed tables that only a third ties together
# motion: s=none
SELECT r.x, t.z FROM r JOIN s ON r.k = s.k JOIN t ON s.k = t.k
---
mode: incremental
columns: x, z
operator: join of r, s, t | linear | 3 terms, one per input
term: r | kept | starts at the delta
term: t | kept | starts at the delta
reads: r delta, r old, s old, t delta, t old
WITH `from_r` AS (
  SELECT
    `r`.`k` AS `r.k`,
    `r`.`x` AS `r.x`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
), `from_r_to_s` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`r.k`,
    `t`.`r.x`,
    `n`.`k` AS `s.k`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    `t`.`_csn` AS `_csn`
  FROM `from_r` AS `t`
  JOIN `s@old` AS `n`
    ON `t`.`r.k` = `n`.`k`
), `from_r_to_s_to_t` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`r.k`,
    `t`.`r.x`,
    `t`.`s.k`,
    `n`.`k` AS `t.k`,
    `n`.`z` AS `t.z`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    GREATEST(`t`.`_csn`, `n`.`_csn`) AS `_csn`
  FROM `from_r_to_s` AS `t`
  JOIN (
    SELECT
      `k`,
      `z`,
      `_count`,
      CAST(0 AS BIGINT) AS `_csn`
    FROM `t@old`
    UNION ALL
    SELECT
      `k`,
      `z`,
      `_count`,
      `_csn`
    FROM `t@delta`
  ) AS n
    ON `t`.`s.k` = `n`.`k`
), `from_t` AS (
  SELECT
    `t`.`k` AS `t.k`,
    `t`.`z` AS `t.z`,
    `t`.`_count`,
    `t`.`_csn`
  FROM `t@delta` AS `t`
), `from_t_to_s` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`t.k`,
    `t`.`t.z`,
    `n`.`k` AS `s.k`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    `t`.`_csn` AS `_csn`
  FROM `from_t` AS `t`
  JOIN `s@old` AS `n`
    ON `n`.`k` = `t`.`t.k`
), `from_t_to_s_to_r` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`s.k`,
    `t`.`t.k`,
    `t`.`t.z`,
    `n`.`k` AS `r.k`,
    `n`.`x` AS `r.x`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    `t`.`_csn` AS `_csn`
  FROM `from_t_to_s` AS `t`
  JOIN `r@old` AS `n`
    ON `n`.`k` = `t`.`s.k`
), `terms` AS (
  SELECT
    `r.k`,
    `r.x`,
    `s.k`,
    `t.k`,
    `t.z`,
    `_count`,
    `_csn`
  FROM (
    SELECT
      `r.k`,
      `r.x`,
      `s.k`,
      `t.k`,
      `t.z`,
      `_count`,
      `_csn`
    FROM `from_r_to_s_to_t`
    UNION ALL
    SELECT
      `r.k`,
      `r.x`,
      `s.k`,
      `t.k`,
      `t.z`,
      `_count`,
      `_csn`
    FROM `from_t_to_s_to_r`
  ) AS u
), `block_delta` AS (
  SELECT
    `r.x` AS `x`,
    `t.z` AS `z`,
    `_count`,
    `_csn`
  FROM `terms`
)
SELECT
  `x`,
  ANY_VALUE(`z`) AS `z`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta`
GROUP BY
  `x`,
  `z`,
  CAST(`z` AS STRING),
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# columns that may hold floating numbers are told apart by their spelling
# motion: t=none
SELECT r.x * t.z AS a, coalesce(r.x, t.z) AS b, coalesce(r.x, 1) AS c, r.x IS NULL AS d, CAST(t.z AS INT) AS e, 1e0 AS f,
  CASE WHEN r.x > 1 THEN r.k ELSE r.x END AS h, sqrt(abs(r.x)) AS i, 'e' AS l, 1.5 AS m, CAST(r.x AS DOUBLE) AS n
FROM r JOIN t ON r.k = t.k
---
mode: incremental
columns: a, b, c, d, e, f, h, i, l, m, n
operator: join of r, t | linear | 2 terms, one per input
term: r | kept | starts at the delta
reads: r delta, t old
WITH `from_r` AS (
  SELECT
    `r`.`k` AS `r.k`,
    `r`.`x` AS `r.x`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
), `from_r_to_t` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`r.k`,
    `t`.`r.x`,
    `n`.`k` AS `t.k`,
    `n`.`z` AS `t.z`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    `t`.`_csn` AS `_csn`
  FROM `from_r` AS `t`
  JOIN `t@old` AS `n`
    ON `t`.`r.k` = `n`.`k`
), `block_delta` AS (
  SELECT
    `r.x` * `t.z` AS `a`,
    COALESCE(`r.x`, `t.z`) AS `b`,
    COALESCE(`r.x`, 1) AS `c`,
    `r.x` IS NULL AS `d`,
    CAST(`t.z` AS INT) AS `e`,
    1e0 AS `f`,
    CASE WHEN `r.x` > 1 THEN `r.k` ELSE `r.x` END AS `h`,
    SQRT(ABS(`r.x`)) AS `i`,
    'e' AS `l`,
    1.5 AS `m`,
    CAST(`r.x` AS DOUBLE) AS `n`,
    `_count`,
    `_csn`
  FROM `from_r_to_t`
)
SELECT
  ANY_VALUE(`a`) AS `a`,
  ANY_VALUE(`b`) AS `b`,
  `c`,
  `d`,
  `e`,
  ANY_VALUE(`f`) AS `f`,
  `h`,
  ANY_VALUE(`i`) AS `i`,
  `l`,
  `m`,
  ANY_VALUE(`n`) AS `n`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta`
GROUP BY
  `a`,
  `b`,
  `c`,
  `d`,
  `e`,
  `f`,
  `h`,
  `i`,
  `l`,
  `m`,
  `n`,
  CAST(`a` AS STRING),
  CAST(`b` AS STRING),
  CAST(`f` AS STRING),
  CAST(`i` AS STRING),
  CAST(`n` AS STRING),
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# neither an inequality nor a condition on one table ties it to those before it
# motion: s=none, t=none
SELECT r.x, t.z, s.w FROM r, s, t WHERE r.x < s.k AND s.k = 3 AND r.k = t.k AND t.g = s.k
---
mode: incremental
columns: x, z, w
operator: join of r, s, t | linear | 3 terms, one per input
term: r | kept | starts at the delta
reads: r delta, s old, t old
WITH `from_r` AS (
  SELECT
    `r`.`x` AS `r.x`,
    `r`.`k` AS `r.k`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
), `from_r_to_t` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`r.x`,
    `t`.`r.k`,
    `n`.`k` AS `t.k`,
    `n`.`g` AS `t.g`,
    `n`.`z` AS `t.z`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    `t`.`_csn` AS `_csn`
  FROM `from_r` AS `t`
  JOIN `t@old` AS `n`
    ON `t`.`r.k` = `n`.`k`
), `from_r_to_t_to_s` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`r.x`,
    `t`.`r.k`,
    `t`.`t.k`,
    `t`.`t.g`,
    `t`.`t.z`,
    `n`.`k` AS `s.k`,
    `n`.`w` AS `s.w`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    `t`.`_csn` AS `_csn`
  FROM `from_r_to_t` AS `t`
  JOIN `s@old` AS `n`
    ON `t`.`r.x` < `n`.`k` AND `n`.`k` = 3 AND `t`.`t.g` = `n`.`k`
), `block_delta` AS (
  SELECT
    `r.x` AS `x`,
    `t.z` AS `z`,
    `s.w` AS `w`,
    `_count`,
    `_csn`
  FROM `from_r_to_t_to_s`
)
SELECT
  `x`,
  ANY_VALUE(`z`) AS `z`,
  `w`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta`
GROUP BY
  `x`,
  `z`,
  `w`,
  CAST(`z` AS STRING),
  `_csn`
HAVING
  SUM(`_count`) <> 0

# a parent is read by key
SELECT c.x, p.w FROM c JOIN p ON c.pid = p.id
---
mode: incremental
columns: x, w
operator: join of c, p | linear | 2 terms, one per input
term: c | kept | p by key: base rows only of keys the delta does not touch
term: p | kept | foreign key c → p: base rows only of keys that were updated
reads: c delta, c old, p delta, p old
WITH `from_c` AS (
  SELECT
    `c`.`pid` AS `c.pid`,
    `c`.`x` AS `c.x`,
    `c`.`_count`,
    `c`.`_csn`
  FROM `c@delta` AS `c`
), `keys_of_p` AS (
  SELECT DISTINCT
    `t`.`c.pid` AS `id`
  FROM `from_c` AS `t`
  WHERE
    NOT EXISTS(
      SELECT
        1
      FROM `p@delta` AS `d`
      WHERE
        `d`.`id` = `t`.`c.pid`
    )
), `from_c_to_p` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`c.pid`,
    `t`.`c.x`,
    `n`.`id` AS `p.id`,
    `n`.`w` AS `p.w`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    GREATEST(`t`.`_csn`, `n`.`_csn`) AS `_csn`
  FROM `from_c` AS `t`
  JOIN (
    SELECT
      `id`,
      `w`,
      CAST(1 AS BIGINT) AS `_count`,
      CAST(0 AS BIGINT) AS `_csn`
    FROM (
      SELECT
        `id`,
        `w`,
        `_count`,
        `_csn`,
        MIN(`_csn`) OVER (PARTITION BY `id`) AS `_rv_first`
      FROM `p@delta`
    ) AS f
    WHERE
      `_csn` = `_rv_first` AND `_count` < 0
    UNION ALL
    SELECT /*+ BROADCAST(k) */
      `o`.`id`,
      `o`.`w`,
      `o`.`_count`,
      CAST(0 AS BIGINT) AS `_csn`
    FROM `p@old` AS `o`
    JOIN `keys_of_p` AS `k`
      ON `o`.`id` = `k`.`id`
    UNION ALL
    SELECT
      `id`,
      `w`,
      `_count`,
      `_csn`
    FROM `p@delta`
  ) AS n
    ON `t`.`c.pid` = `n`.`id`
), `from_p` AS (
  SELECT
    `p`.`id` AS `p.id`,
    `p`.`w` AS `p.w`,
    `p`.`_count`,
    `p`.`_csn`
  FROM `p@delta` AS `p`
), `first_changes_of_p` AS (
  SELECT
    `id`,
    `_csn`,
    MIN(`_count`) AS `lowest`,
    MAX(`_count`) AS `highest`
  FROM (
    SELECT
      `id`,
      `_count`,
      `_csn`
    FROM (
      SELECT
        `id`,
        `_count`,
        `_csn`,
        MIN(`_csn`) OVER (PARTITION BY `id`) AS `_rv_first`
      FROM `p@delta`
    ) AS r
    WHERE
      `_csn` = `_rv_first`
  ) AS f
  GROUP BY
    `id`,
    `_csn`
), `updated_keys_of_p` AS (
  SELECT
    `id`
  FROM `first_changes_of_p`
  WHERE
    `lowest` < 0 AND `highest` > 0
), `from_p_to_c` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`p.id`,
    `t`.`p.w`,
    `n`.`pid` AS `c.pid`,
    `n`.`x` AS `c.x`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    `t`.`_csn` AS `_csn`
  FROM `from_p` AS `t`
  JOIN (
    SELECT
      `c`.`pid`,
      `c`.`x`,
      -`c`.`_count` AS `_count`
    FROM `c@delta` AS `c`
    JOIN `first_changes_of_p` AS `f`
      ON `c`.`pid` = `f`.`id`
    WHERE
      `f`.`highest` < 0 AND `c`.`_csn` <= `f`.`_csn`
    UNION ALL
    SELECT /*+ BROADCAST(f) */
      `c`.`pid`,
      `c`.`x`,
      `c`.`_count`
    FROM `c@old` AS `c`
    JOIN `updated_keys_of_p` AS `f`
      ON `c`.`pid` = `f`.`id`
  ) AS n
    ON `n`.`pid` = `t`.`p.id`
), `terms` AS (
  SELECT
    `c.pid`,
    `c.x`,
    `p.id`,
    `p.w`,
    `_count`,
    `_csn`
  FROM (
    SELECT
      `c.pid`,
      `c.x`,
      `p.id`,
      `p.w`,
      `_count`,
      `_csn`
    FROM `from_c_to_p`
    UNION ALL
    SELECT
      `c.pid`,
      `c.x`,
      `p.id`,
      `p.w`,
      `_count`,
      `_csn`
    FROM `from_p_to_c`
  ) AS u
), `block_delta` AS (
  SELECT
    `c.x` AS `x`,
    `p.w` AS `w`,
    `_count`,
    `_csn`
  FROM `terms`
)
SELECT
  `x`,
  `w`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta`
GROUP BY
  `x`,
  `w`,
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# new parents have no old children
# motion: p=inserts
SELECT c.x, p.w FROM c JOIN p ON c.pid = p.id
---
mode: incremental
columns: x, w
operator: join of c, p | linear | 2 terms, one per input
term: c | kept | p by key: base rows only of keys the delta does not touch
term: p | left out | foreign key c → p and only new keys: no old row can match
reads: c delta, p delta, p old
WITH `from_c` AS (
  SELECT
    `c`.`pid` AS `c.pid`,
    `c`.`x` AS `c.x`,
    `c`.`_count`,
    `c`.`_csn`
  FROM `c@delta` AS `c`
), `keys_of_p` AS (
  SELECT DISTINCT
    `t`.`c.pid` AS `id`
  FROM `from_c` AS `t`
  WHERE
    NOT EXISTS(
      SELECT
        1
      FROM `p@delta` AS `d`
      WHERE
        `d`.`id` = `t`.`c.pid`
    )
), `from_c_to_p` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`c.pid`,
    `t`.`c.x`,
    `n`.`id` AS `p.id`,
    `n`.`w` AS `p.w`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    GREATEST(`t`.`_csn`, `n`.`_csn`) AS `_csn`
  FROM `from_c` AS `t`
  JOIN (
    SELECT /*+ BROADCAST(k) */
      `o`.`id`,
      `o`.`w`,
      `o`.`_count`,
      CAST(0 AS BIGINT) AS `_csn`
    FROM `p@old` AS `o`
    JOIN `keys_of_p` AS `k`
      ON `o`.`id` = `k`.`id`
    UNION ALL
    SELECT
      `id`,
      `w`,
      `_count`,
      `_csn`
    FROM `p@delta`
  ) AS n
    ON `t`.`c.pid` = `n`.`id`
), `from_p` AS (
  SELECT
    `p`.`id` AS `p.id`,
    `p`.`w` AS `p.w`,
    `p`.`_count`,
    `p`.`_csn`
  FROM `p@delta` AS `p`
), `block_delta` AS (
  SELECT
    `c.x` AS `x`,
    `p.w` AS `w`,
    `_count`,
    `_csn`
  FROM `from_c_to_p`
)
SELECT
  `x`,
  `w`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta`
GROUP BY
  `x`,
  `w`,
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# parents that come and go read no old child
# motion: p=no updates
# no sql
SELECT c.x, p.w FROM c JOIN p ON c.pid = p.id
---
mode: incremental
columns: x, w
operator: join of c, p | linear | 2 terms, one per input
term: c | kept | p by key: base rows only of keys the delta does not touch
term: p | kept | foreign key c → p and no key updated: no base rows read
reads: c delta, p delta, p old
===
# children alone: the parent's old rows by key
# motion: p=none
# no sql
SELECT c.x, p.w FROM c JOIN p ON c.pid = p.id
---
mode: incremental
columns: x, w
operator: join of c, p | linear | 2 terms, one per input
term: c | kept | starts at the delta
reads: c delta, p old
===
# only parents moved, and only by insertion: nothing can change
# motion: p=inserts, c=none
SELECT c.x, p.w FROM c JOIN p ON c.pid = p.id
---
mode: incremental
columns: x, w
operator: join of c, p | linear | 2 terms, one per input
term: p | left out | foreign key c → p and only new keys: no old row can match
reads: c old, p delta, p old
WITH `from_p` AS (
  SELECT
    `p`.`id` AS `p.id`,
    `p`.`w` AS `p.w`,
    `p`.`_count`,
    `p`.`_csn`
  FROM `p@delta` AS `p`
), `block_delta` AS (
  SELECT
    `x`,
    `w`,
    `_count`,
    CAST(0 AS BIGINT) AS `_csn`
  FROM (
    SELECT
      `c`.`x` AS `x`,
      `p`.`w` AS `w`,
      `c`.`_count` * `p`.`_count` AS `_count`
    FROM `c@old` AS `c`
    JOIN `p@old` AS `p`
      ON `c`.`pid` = `p`.`id`
  ) AS o
  WHERE
    FALSE
)
SELECT
  `x`,
  `w`,
  SUM(`_count`) AS `_count`,
  `_csn`
FROM `block_delta`
GROUP BY
  `x`,
  `w`,
  `_csn`
HAVING
  SUM(`_count`) <> 0
===
# a chain of foreign keys
# no sql
SELECT d.y, c.x, p.w FROM d JOIN c ON d.cid = c.id JOIN p ON c.pid = p.id
---
mode: incremental
columns: y, x, w
operator: join of d, c, p | linear | 3 terms, one per input
term: d | kept | c by key: base rows only of keys the delta does not touch; p by key: base rows only of keys the delta does not touch
term: c | kept | foreign key d → c: base rows only of keys that were updated; p by key: base rows only of keys the delta does not touch
term: p | kept | foreign key c → p: base rows only of keys that were updated
reads: c delta, c old, d delta, d old, p delta, p old
===
# a chain in which the top only grew
# motion: p=inserts
# no sql
SELECT d.y, c.x, p.w FROM d JOIN c ON d.cid = c.id JOIN p ON c.pid = p.id
---
mode: incremental
columns: y, x, w
operator: join of d, c, p | linear | 3 terms, one per input
term: d | kept | c by key: base rows only of keys the delta does not touch; p by key: base rows only of keys the delta does not touch
term: c | kept | foreign key d → c: base rows only of keys that were updated; p by key: base rows only of keys the delta does not touch
term: p | left out | foreign key c → p and only new keys: no old row can match
reads: c delta, c old, d delta, d old, p delta, p old
===
# a key of two columns
# no sql
SELECT l.n, o.x FROM l JOIN o ON l.a = o.a AND l.b = o.b
---
mode: incremental
columns: n, x
operator: join of l, o | linear | 2 terms, one per input
term: l | kept | o by key: base rows only of keys the delta does not touch
term: o | kept | foreign key l → o: base rows only of keys that were updated
reads: l delta, l old, o delta, o old
===
# a key of two columns, new parents
# motion: o=inserts
# no sql
SELECT l.n, o.x FROM l JOIN o ON l.a = o.a AND l.b = o.b
---
mode: incremental
columns: n, x
operator: join of l, o | linear | 2 terms, one per input
term: l | kept | o by key: base rows only of keys the delta does not touch
term: o | left out | foreign key l → o and only new keys: no old row can match
reads: l delta, o delta, o old
===
# half a key is no key
# no sql
SELECT l.n, o.x FROM l JOIN o ON l.a = o.a
---
mode: incremental
columns: n, x
operator: join of l, o | linear | 2 terms, one per input
term: l | kept | starts at the delta
term: o | kept | starts at the delta
reads: l delta, l old, o delta, o old
===
# an expression over a key is no key
# no sql
SELECT c.x, p.w FROM c JOIN p ON c.pid + 0 = p.id
---
mode: incremental
columns: x, w
operator: join of c, p | linear | 2 terms, one per input
term: c | kept | starts at the delta
term: p | kept | starts at the delta
reads: c delta, c old, p delta, p old
===
# totals by a parent's column
# motion: p=inserts
SELECT p.g, SUM(c.x) AS total FROM c JOIN p ON c.pid = p.id GROUP BY p.g
---
mode: summary
columns: g, total
operator: GROUP BY p.g | linear | accumulators per group for SUM(c.x)
operator: join of c, p | linear | 2 terms, one per input
term: c | kept | p by key: base rows only of keys the delta does not touch
term: p | left out | foreign key c → p and only new keys: no old row can match
reads: c delta, p delta, p old
groups: k1 int, _rv_rows bigint, _rv_n1 bigint, _rv_s2 bigint
WITH `from_c` AS (
  SELECT
    `c`.`pid` AS `c.pid`,
    `c`.`x` AS `c.x`,
    `c`.`_count`,
    `c`.`_csn`
  FROM `c@delta` AS `c`
), `keys_of_p` AS (
  SELECT DISTINCT
    `t`.`c.pid` AS `id`
  FROM `from_c` AS `t`
  WHERE
    NOT EXISTS(
      SELECT
        1
      FROM `p@delta` AS `d`
      WHERE
        `d`.`id` = `t`.`c.pid`
    )
), `from_c_to_p` AS (
  SELECT /*+ BROADCAST(t) */
    `t`.`c.pid`,
    `t`.`c.x`,
    `n`.`id` AS `p.id`,
    `n`.`g` AS `p.g`,
    `t`.`_count` * `n`.`_count` AS `_count`,
    GREATEST(`t`.`_csn`, `n`.`_csn`) AS `_csn`
  FROM `from_c` AS `t`
  JOIN (
    SELECT /*+ BROADCAST(k) */
      `o`.`id`,
      `o`.`g`,
      `o`.`_count`,
      CAST(0 AS BIGINT) AS `_csn`
    FROM `p@old` AS `o`
    JOIN `keys_of_p` AS `k`
      ON `o`.`id` = `k`.`id`
    UNION ALL
    SELECT
      `id`,
      `g`,
      `_count`,
      `_csn`
    FROM `p@delta`
  ) AS n
    ON `t`.`c.pid` = `n`.`id`
), `from_p` AS (
  SELECT
    `p`.`id` AS `p.id`,
    `p`.`g` AS `p.g`,
    `p`.`_count`,
    `p`.`_csn`
  FROM `p@delta` AS `p`
), `block_delta` AS (
  SELECT
    `p.g` AS `k1`,
    `c.x` AS `a1`,
    `_count`,
    `_csn`
  FROM `from_c_to_p`
), `totals` AS (
  SELECT
    `k1`,
    `_csn`,
    COALESCE(SUM(`_count`), CAST(0 AS BIGINT)) AS `_rv_rows`,
    CAST(COALESCE(
      SUM(
        CASE
          WHEN `_count` < 0
          THEN -(
            CASE WHEN NOT `a1` IS NULL THEN CAST(1 AS BIGINT) ELSE CAST(0 AS BIGINT) END
          )
          ELSE CASE WHEN NOT `a1` IS NULL THEN CAST(1 AS BIGINT) ELSE CAST(0 AS BIGINT) END
        END
      ),
      CAST(0 AS BIGINT)
    ) AS BIGINT) AS `_rv_n1`,
    CAST(COALESCE(
      SUM(
        CASE
          WHEN `_count` < 0
          THEN -(
            CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS BIGINT)
          )
          ELSE CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS BIGINT)
        END
      ),
      CAST(0 AS BIGINT)
    ) AS BIGINT) AS `_rv_s2`
  FROM `block_delta`
  GROUP BY
    `k1`,
    `_csn`
), `increments` AS (
  SELECT
    `k1`,
    `_rv_rows`,
    `_rv_n1`,
    `_rv_s2`,
    `_csn`
  FROM `totals`
  WHERE
    `_rv_rows` <> 0 OR `_rv_n1` <> 0 OR `_rv_s2` <> 0
), `held` AS (
  SELECT /*+ BROADCAST(i) */
    `h`.`k1`,
    `h`.`_rv_rows`,
    `h`.`_rv_n1`,
    `h`.`_rv_s2`
  FROM `_rv_groups@old` AS `h`
  JOIN (
    SELECT DISTINCT
      `k1`
    FROM `increments`
  ) AS i
    ON `h`.`k1` IS NOT DISTINCT FROM `i`.`k1`
), `running` AS (
  SELECT
    `k1`,
    CAST(SUM(`_rv_rows`) OVER (PARTITION BY `k1` ORDER BY `_csn` ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS `_rv_rows`,
    CAST(SUM(`_rv_n1`) OVER (PARTITION BY `k1` ORDER BY `_csn` ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS `_rv_n1`,
    CAST(SUM(`_rv_s2`) OVER (PARTITION BY `k1` ORDER BY `_csn` ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS `_rv_s2`,
    `_csn` AS `_rv_at`,
    LEAD(`_csn`) OVER (PARTITION BY `k1` ORDER BY `_csn`) AS `_rv_until`
  FROM (
    SELECT
      `k1`,
      `_rv_rows`,
      `_rv_n1`,
      `_rv_s2`,
      `_csn`
    FROM (
      SELECT
        `k1`,
        `_rv_rows`,
        `_rv_n1`,
        `_rv_s2`,
        `_csn`
      FROM `increments`
      UNION ALL
      SELECT
        `k1`,
        `_rv_rows`,
        `_rv_n1`,
        `_rv_s2`,
        CAST(0 AS BIGINT) AS `_csn`
      FROM `held`
    ) AS u
  ) AS s
)
SELECT
  `k1`,
  `_rv_rows`,
  `_rv_n1`,
  `_rv_s2`,
  `_count`,
  CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END AS `_csn`
FROM (
  SELECT
    `k1`,
    `_rv_rows`,
    `_rv_n1`,
    `_rv_s2`,
    `_rv_at`,
    `_rv_until`,
    EXPLODE(ARRAY(CAST(1 AS BIGINT), CAST(-1 AS BIGINT))) AS `_count`
  FROM `running`
) AS t
WHERE
  CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END > 0 AND `_rv_rows` <> 0

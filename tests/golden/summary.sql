# count and sum per group
SELECT g, COUNT(*) AS n, SUM(x) AS total FROM r GROUP BY g
---
mode: summary
columns: g, n, total
operator: GROUP BY r.g | linear | accumulators per group for COUNT(*), SUM(r.x)
reads: r delta
groups: k1 int, _rv_rows bigint, _rv_n1 bigint, _rv_s2 bigint
WITH `block_delta` AS (
  SELECT
    `r`.`g` AS `k1`,
    `r`.`x` AS `a1`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
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
===
# a grand total
SELECT COUNT(*) AS n, SUM(x) AS total FROM r
---
mode: summary
columns: n, total
operator: grand total | linear | accumulators per group for COUNT(*), SUM(r.x)
reads: r delta
groups: _rv_rows bigint, _rv_n1 bigint, _rv_s2 bigint
WITH `block_delta` AS (
  SELECT
    `r`.`x` AS `a1`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
), `totals` AS (
  SELECT
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
    `_csn`
), `increments` AS (
  SELECT
    `_rv_rows`,
    `_rv_n1`,
    `_rv_s2`,
    `_csn`
  FROM `totals`
  WHERE
    `_rv_rows` <> 0 OR `_rv_n1` <> 0 OR `_rv_s2` <> 0
), `held` AS (
  SELECT
    `h`.`_rv_rows`,
    `h`.`_rv_n1`,
    `h`.`_rv_s2`
  FROM `_rv_groups@old` AS `h`
), `running` AS (
  SELECT
    CAST(SUM(`_rv_rows`) OVER (ORDER BY `_csn` ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS `_rv_rows`,
    CAST(SUM(`_rv_n1`) OVER (ORDER BY `_csn` ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS `_rv_n1`,
    CAST(SUM(`_rv_s2`) OVER (ORDER BY `_csn` ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS `_rv_s2`,
    `_csn` AS `_rv_at`,
    LEAD(`_csn`) OVER (ORDER BY `_csn`) AS `_rv_until`
  FROM (
    SELECT
      `_rv_rows`,
      `_rv_n1`,
      `_rv_s2`,
      `_csn`
    FROM (
      SELECT
        `_rv_rows`,
        `_rv_n1`,
        `_rv_s2`,
        `_csn`
      FROM `increments`
      UNION ALL
      SELECT
        `_rv_rows`,
        `_rv_n1`,
        `_rv_s2`,
        CAST(0 AS BIGINT) AS `_csn`
      FROM `held`
    ) AS u
  ) AS s
)
SELECT
  `_rv_rows`,
  `_rv_n1`,
  `_rv_s2`,
  `_count`,
  CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END AS `_csn`
FROM (
  SELECT
    `_rv_rows`,
    `_rv_n1`,
    `_rv_s2`,
    `_rv_at`,
    `_rv_until`,
    EXPLODE(ARRAY(CAST(1 AS BIGINT), CAST(-1 AS BIGINT))) AS `_count`
  FROM `running`
) AS t
WHERE
  CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END > 0
===
# average and spread of whole numbers
# no sql
SELECT g, AVG(x) AS mean, VARIANCE(x) AS v, STDDEV_POP(x) AS sd FROM r GROUP BY g
---
mode: summary
columns: g, mean, v, sd
operator: GROUP BY r.g | linear | accumulators per group for AVG(r.x), VARIANCE(r.x), STDDEV_POP(r.x)
reads: r delta
groups: k1 int, _rv_rows bigint, _rv_n1 bigint, _rv_s2 bigint, _rv_s3 decimal(38,0), _rv_q4 decimal(38,0)
===
# decimals keep their scale
# no sql
SELECT k, SUM(y) AS total, AVG(y) AS mean, VAR_POP(y) AS v FROM s GROUP BY k
---
mode: summary
columns: k, total, mean, v
operator: GROUP BY s.k | linear | accumulators per group for SUM(s.y), AVG(s.y), VAR_POP(s.y)
reads: s delta
groups: k1 int, _rv_rows bigint, _rv_n1 bigint, _rv_s2 decimal(38,2), _rv_q3 decimal(38,4)
===
# doubles are kept in parts
SELECT k, SUM(z) AS total FROM t GROUP BY k
---
mode: summary
columns: k, total
operator: GROUP BY t.k | linear | accumulators per group for SUM(t.z)
reads: t delta
groups: k1 int, _rv_rows bigint, _rv_n1 bigint, _rv_n2 bigint, _rv_n3 bigint, _rv_n4 bigint, _rv_n5 bigint, _rv_s6 decimal(38,9), _rv_r7 double, _rv_h8 double
WITH `block_delta` AS (
  SELECT
    `t`.`k` AS `k1`,
    `t`.`z` AS `a1`,
    `t`.`_count`,
    `t`.`_csn`
  FROM `t@delta` AS `t`
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
            CASE
              WHEN CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) = CAST('NaN' AS DOUBLE)
              THEN CAST(1 AS BIGINT)
              ELSE CAST(0 AS BIGINT)
            END
          )
          ELSE CASE
            WHEN CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) = CAST('NaN' AS DOUBLE)
            THEN CAST(1 AS BIGINT)
            ELSE CAST(0 AS BIGINT)
          END
        END
      ),
      CAST(0 AS BIGINT)
    ) AS BIGINT) AS `_rv_n2`,
    CAST(COALESCE(
      SUM(
        CASE
          WHEN `_count` < 0
          THEN -(
            CASE
              WHEN CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) = CAST('Infinity' AS DOUBLE)
              THEN CAST(1 AS BIGINT)
              ELSE CAST(0 AS BIGINT)
            END
          )
          ELSE CASE
            WHEN CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) = CAST('Infinity' AS DOUBLE)
            THEN CAST(1 AS BIGINT)
            ELSE CAST(0 AS BIGINT)
          END
        END
      ),
      CAST(0 AS BIGINT)
    ) AS BIGINT) AS `_rv_n3`,
    CAST(COALESCE(
      SUM(
        CASE
          WHEN `_count` < 0
          THEN -(
            CASE
              WHEN CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) = -CAST('Infinity' AS DOUBLE)
              THEN CAST(1 AS BIGINT)
              ELSE CAST(0 AS BIGINT)
            END
          )
          ELSE CASE
            WHEN CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) = -CAST('Infinity' AS DOUBLE)
            THEN CAST(1 AS BIGINT)
            ELSE CAST(0 AS BIGINT)
          END
        END
      ),
      CAST(0 AS BIGINT)
    ) AS BIGINT) AS `_rv_n4`,
    CAST(COALESCE(
      SUM(
        CASE
          WHEN `_count` < 0
          THEN -(
            CASE
              WHEN ABS(CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE)) >= CAST(1e18 AS DOUBLE)
              AND NOT (
                CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) = CAST('NaN' AS DOUBLE)
                OR CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) = CAST('Infinity' AS DOUBLE)
                OR CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) = -CAST('Infinity' AS DOUBLE)
              )
              THEN CAST(1 AS BIGINT)
              ELSE CAST(0 AS BIGINT)
            END
          )
          ELSE CASE
            WHEN ABS(CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE)) >= CAST(1e18 AS DOUBLE)
            AND NOT (
              CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) = CAST('NaN' AS DOUBLE)
              OR CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) = CAST('Infinity' AS DOUBLE)
              OR CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) = -CAST('Infinity' AS DOUBLE)
            )
            THEN CAST(1 AS BIGINT)
            ELSE CAST(0 AS BIGINT)
          END
        END
      ),
      CAST(0 AS BIGINT)
    ) AS BIGINT) AS `_rv_n5`,
    CAST(COALESCE(
      SUM(
        CASE
          WHEN `_count` < 0
          THEN -(
            CAST(CASE
              WHEN ABS(CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE)) < CAST(1e18 AS DOUBLE)
              THEN CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE)
              ELSE CAST(0 AS DOUBLE)
            END AS DECIMAL(38, 9))
          )
          ELSE CAST(CASE
            WHEN ABS(CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE)) < CAST(1e18 AS DOUBLE)
            THEN CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE)
            ELSE CAST(0 AS DOUBLE)
          END AS DECIMAL(38, 9))
        END
      ),
      CAST(0 AS DECIMAL(38, 9))
    ) AS DECIMAL(38, 9)) AS `_rv_s6`,
    CAST(COALESCE(
      SUM(
        CASE
          WHEN `_count` < 0
          THEN -(
            CASE
              WHEN ABS(CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE)) < CAST(1e18 AS DOUBLE)
              THEN CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) - CAST(CAST(CASE
                WHEN ABS(CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE)) < CAST(1e18 AS DOUBLE)
                THEN CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE)
                ELSE CAST(0 AS DOUBLE)
              END AS DECIMAL(38, 9)) AS DOUBLE)
              ELSE CAST(0 AS DOUBLE)
            END
          )
          ELSE CASE
            WHEN ABS(CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE)) < CAST(1e18 AS DOUBLE)
            THEN CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) - CAST(CAST(CASE
              WHEN ABS(CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE)) < CAST(1e18 AS DOUBLE)
              THEN CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE)
              ELSE CAST(0 AS DOUBLE)
            END AS DECIMAL(38, 9)) AS DOUBLE)
            ELSE CAST(0 AS DOUBLE)
          END
        END
      ),
      CAST(0 AS DOUBLE)
    ) AS DOUBLE) AS `_rv_r7`,
    CAST(COALESCE(
      SUM(
        CASE
          WHEN `_count` < 0
          THEN -(
            CASE
              WHEN ABS(CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE)) >= CAST(1e18 AS DOUBLE)
              AND NOT (
                CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) = CAST('NaN' AS DOUBLE)
                OR CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) = CAST('Infinity' AS DOUBLE)
                OR CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) = -CAST('Infinity' AS DOUBLE)
              )
              THEN CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE)
              ELSE CAST(0 AS DOUBLE)
            END
          )
          ELSE CASE
            WHEN ABS(CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE)) >= CAST(1e18 AS DOUBLE)
            AND NOT (
              CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) = CAST('NaN' AS DOUBLE)
              OR CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) = CAST('Infinity' AS DOUBLE)
              OR CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE) = -CAST('Infinity' AS DOUBLE)
            )
            THEN CAST(CASE WHEN NOT `a1` IS NULL THEN `a1` END AS DOUBLE)
            ELSE CAST(0 AS DOUBLE)
          END
        END
      ),
      CAST(0 AS DOUBLE)
    ) AS DOUBLE) AS `_rv_h8`
  FROM `block_delta`
  GROUP BY
    `k1`,
    `_csn`
), `increments` AS (
  SELECT
    `k1`,
    `_rv_rows`,
    `_rv_n1`,
    `_rv_n2`,
    `_rv_n3`,
    `_rv_n4`,
    `_rv_n5`,
    `_rv_s6`,
    `_rv_r7`,
    `_rv_h8`,
    `_csn`
  FROM `totals`
  WHERE
    `_rv_rows` <> 0
    OR `_rv_n1` <> 0
    OR `_rv_n2` <> 0
    OR `_rv_n3` <> 0
    OR `_rv_n4` <> 0
    OR `_rv_n5` <> 0
    OR `_rv_s6` <> 0
    OR `_rv_r7` <> 0
    OR `_rv_h8` <> 0
), `held` AS (
  SELECT /*+ BROADCAST(i) */
    `h`.`k1`,
    `h`.`_rv_rows`,
    `h`.`_rv_n1`,
    `h`.`_rv_n2`,
    `h`.`_rv_n3`,
    `h`.`_rv_n4`,
    `h`.`_rv_n5`,
    `h`.`_rv_s6`,
    `h`.`_rv_r7`,
    `h`.`_rv_h8`
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
    CAST(SUM(`_rv_n2`) OVER (PARTITION BY `k1` ORDER BY `_csn` ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS `_rv_n2`,
    CAST(SUM(`_rv_n3`) OVER (PARTITION BY `k1` ORDER BY `_csn` ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS `_rv_n3`,
    CAST(SUM(`_rv_n4`) OVER (PARTITION BY `k1` ORDER BY `_csn` ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS `_rv_n4`,
    CAST(SUM(`_rv_n5`) OVER (PARTITION BY `k1` ORDER BY `_csn` ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS `_rv_n5`,
    CAST(SUM(`_rv_s6`) OVER (PARTITION BY `k1` ORDER BY `_csn` ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS DECIMAL(38, 9)) AS `_rv_s6`,
    CAST(SUM(`_rv_r7`) OVER (PARTITION BY `k1` ORDER BY `_csn` ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS DOUBLE) AS `_rv_r7`,
    CAST(SUM(`_rv_h8`) OVER (PARTITION BY `k1` ORDER BY `_csn` ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS DOUBLE) AS `_rv_h8`,
    `_csn` AS `_rv_at`,
    LEAD(`_csn`) OVER (PARTITION BY `k1` ORDER BY `_csn`) AS `_rv_until`
  FROM (
    SELECT
      `k1`,
      `_rv_rows`,
      `_rv_n1`,
      `_rv_n2`,
      `_rv_n3`,
      `_rv_n4`,
      `_rv_n5`,
      `_rv_s6`,
      `_rv_r7`,
      `_rv_h8`,
      `_csn`
    FROM (
      SELECT
        `k1`,
        `_rv_rows`,
        `_rv_n1`,
        `_rv_n2`,
        `_rv_n3`,
        `_rv_n4`,
        `_rv_n5`,
        `_rv_s6`,
        `_rv_r7`,
        `_rv_h8`,
        `_csn`
      FROM `increments`
      UNION ALL
      SELECT
        `k1`,
        `_rv_rows`,
        `_rv_n1`,
        `_rv_n2`,
        `_rv_n3`,
        `_rv_n4`,
        `_rv_n5`,
        `_rv_s6`,
        `_rv_r7`,
        `_rv_h8`,
        CAST(0 AS BIGINT) AS `_csn`
      FROM `held`
    ) AS u
  ) AS s
)
SELECT
  `k1`,
  `_rv_rows`,
  `_rv_n1`,
  `_rv_n2`,
  `_rv_n3`,
  `_rv_n4`,
  `_rv_n5`,
  `_rv_s6`,
  `_rv_r7`,
  `_rv_h8`,
  `_count`,
  CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END AS `_csn`
FROM (
  SELECT
    `k1`,
    `_rv_rows`,
    `_rv_n1`,
    `_rv_n2`,
    `_rv_n3`,
    `_rv_n4`,
    `_rv_n5`,
    `_rv_s6`,
    `_rv_r7`,
    `_rv_h8`,
    `_rv_at`,
    `_rv_until`,
    EXPLODE(ARRAY(CAST(1 AS BIGINT), CAST(-1 AS BIGINT))) AS `_count`
  FROM `running`
) AS t
WHERE
  CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END > 0 AND `_rv_rows` <> 0
===
# FILTER counts a part
# no sql
SELECT g, COUNT(*) FILTER (WHERE x > 1) AS many, SUM(x) FILTER (WHERE k IS NULL) AS lost FROM r GROUP BY g
---
mode: summary
columns: g, many, lost
operator: GROUP BY r.g | linear | accumulators per group for COUNT(*) FILTER(WHERE r.x > 1), SUM(r.x) FILTER(WHERE r.k IS NULL)
operator: expressions | linear | row by row
reads: r delta
groups: k1 int, _rv_rows bigint, _rv_n1 bigint, _rv_n2 bigint, _rv_s3 bigint
===
# equal accumulators are kept once
# no sql
SELECT g, SUM(x) AS a, AVG(x) AS b, COUNT(x) AS c FROM r GROUP BY g
---
mode: summary
columns: g, a, b, c
operator: GROUP BY r.g | linear | accumulators per group for SUM(r.x), AVG(r.x), COUNT(r.x)
reads: r delta
groups: k1 int, _rv_rows bigint, _rv_n1 bigint, _rv_s2 bigint
===
# HAVING over an aggregate that is not shown
SELECT g FROM r GROUP BY g HAVING COUNT(*) > 1
---
mode: summary
columns: g
operator: HAVING COUNT(*) > 1 | linear | row by row
operator: GROUP BY r.g | linear | accumulators per group for COUNT(*)
reads: r delta
groups: k1 int, _rv_rows bigint
WITH `block_delta` AS (
  SELECT
    `r`.`g` AS `k1`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
), `totals` AS (
  SELECT
    `k1`,
    `_csn`,
    COALESCE(SUM(`_count`), CAST(0 AS BIGINT)) AS `_rv_rows`
  FROM `block_delta`
  GROUP BY
    `k1`,
    `_csn`
), `increments` AS (
  SELECT
    `k1`,
    `_rv_rows`,
    `_csn`
  FROM `totals`
  WHERE
    `_rv_rows` <> 0
), `held` AS (
  SELECT /*+ BROADCAST(i) */
    `h`.`k1`,
    `h`.`_rv_rows`
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
    `_csn` AS `_rv_at`,
    LEAD(`_csn`) OVER (PARTITION BY `k1` ORDER BY `_csn`) AS `_rv_until`
  FROM (
    SELECT
      `k1`,
      `_rv_rows`,
      `_csn`
    FROM (
      SELECT
        `k1`,
        `_rv_rows`,
        `_csn`
      FROM `increments`
      UNION ALL
      SELECT
        `k1`,
        `_rv_rows`,
        CAST(0 AS BIGINT) AS `_csn`
      FROM `held`
    ) AS u
  ) AS s
)
SELECT
  `k1`,
  `_rv_rows`,
  `_count`,
  CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END AS `_csn`
FROM (
  SELECT
    `k1`,
    `_rv_rows`,
    `_rv_at`,
    `_rv_until`,
    EXPLODE(ARRAY(CAST(1 AS BIGINT), CAST(-1 AS BIGINT))) AS `_count`
  FROM `running`
) AS t
WHERE
  CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END > 0 AND `_rv_rows` <> 0
===
# HAVING without GROUP BY
# no sql
SELECT SUM(x) AS total FROM r HAVING COUNT(*) > 1
---
mode: summary
columns: total
operator: HAVING COUNT(*) > 1 | linear | row by row
operator: grand total | linear | accumulators per group for SUM(r.x), COUNT(*)
reads: r delta
groups: _rv_rows bigint, _rv_n1 bigint, _rv_s2 bigint
===
# GROUP BY an expression and its alias
# no sql
SELECT x % 2 AS odd, COUNT(*) AS n FROM r GROUP BY odd
---
mode: summary
columns: odd, n
operator: GROUP BY r.x % 2 | linear | accumulators per group for COUNT(*)
operator: expressions | linear | row by row
reads: r delta
groups: k1 int, _rv_rows bigint
===
# GROUP BY a place in the list
# no sql
SELECT g, k, COUNT(*) AS n FROM r GROUP BY 1, 2
---
mode: summary
columns: g, k, n
operator: GROUP BY r.g, r.k | linear | accumulators per group for COUNT(*)
reads: r delta
groups: k1 int, k2 int, _rv_rows bigint
===
# GROUP BY ALL
# no sql
SELECT g, SUM(x) AS total FROM r GROUP BY ALL
---
mode: summary
columns: g, total
operator: GROUP BY r.g | linear | accumulators per group for SUM(r.x)
reads: r delta
groups: k1 int, _rv_rows bigint, _rv_n1 bigint, _rv_s2 bigint
===
# GROUP BY a constant
# no sql
SELECT 5 AS five, COUNT(*) AS n FROM r GROUP BY five
---
mode: summary
columns: five, n
operator: expressions | linear | row by row
operator: GROUP BY 1 | linear | accumulators per group for COUNT(*)
operator: expressions | linear | row by row
reads: r delta
groups: k1 int, _rv_rows bigint
===
# expressions over aggregates and keys
# no sql
SELECT g + 1 AS h, CASE WHEN SUM(x) > 3 THEN 'big' ELSE 'small' END AS size, SUM(x) + COUNT(*) AS t FROM r GROUP BY g
---
mode: summary
columns: h, size, t
operator: expressions | linear | row by row
operator: GROUP BY r.g | linear | accumulators per group for SUM(r.x), COUNT(*)
reads: r delta
groups: k1 int, _rv_rows bigint, _rv_n1 bigint, _rv_s2 bigint
===
# DISTINCT at the top is groups without aggregates
SELECT DISTINCT k, g FROM r
---
mode: summary
columns: k, g
operator: DISTINCT | linear | rows with their counts
reads: r delta
groups: k int, g int, _rv_rows bigint
WITH `block_delta` AS (
  SELECT
    `r`.`k` AS `k`,
    `r`.`g` AS `g`,
    `r`.`_count`,
    `r`.`_csn`
  FROM `r@delta` AS `r`
), `totals` AS (
  SELECT
    `k`,
    `g`,
    `_csn`,
    COALESCE(SUM(`_count`), CAST(0 AS BIGINT)) AS `_rv_rows`
  FROM `block_delta`
  GROUP BY
    `k`,
    `g`,
    `_csn`
), `increments` AS (
  SELECT
    `k`,
    `g`,
    `_rv_rows`,
    `_csn`
  FROM `totals`
  WHERE
    `_rv_rows` <> 0
), `held` AS (
  SELECT /*+ BROADCAST(i) */
    `h`.`k`,
    `h`.`g`,
    `h`.`_rv_rows`
  FROM `_rv_groups@old` AS `h`
  JOIN (
    SELECT DISTINCT
      `k`,
      `g`
    FROM `increments`
  ) AS i
    ON `h`.`k` IS NOT DISTINCT FROM `i`.`k` AND `h`.`g` IS NOT DISTINCT FROM `i`.`g`
), `running` AS (
  SELECT
    `k`,
    `g`,
    CAST(SUM(`_rv_rows`) OVER (
      PARTITION BY `k`, `g`
      ORDER BY `_csn`
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS BIGINT) AS `_rv_rows`,
    `_csn` AS `_rv_at`,
    LEAD(`_csn`) OVER (PARTITION BY `k`, `g` ORDER BY `_csn`) AS `_rv_until`
  FROM (
    SELECT
      `k`,
      `g`,
      `_rv_rows`,
      `_csn`
    FROM (
      SELECT
        `k`,
        `g`,
        `_rv_rows`,
        `_csn`
      FROM `increments`
      UNION ALL
      SELECT
        `k`,
        `g`,
        `_rv_rows`,
        CAST(0 AS BIGINT) AS `_csn`
      FROM `held`
    ) AS u
  ) AS s
)
SELECT
  `k`,
  `g`,
  `_rv_rows`,
  `_count`,
  CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END AS `_csn`
FROM (
  SELECT
    `k`,
    `g`,
    `_rv_rows`,
    `_rv_at`,
    `_rv_until`,
    EXPLODE(ARRAY(CAST(1 AS BIGINT), CAST(-1 AS BIGINT))) AS `_count`
  FROM `running`
) AS t
WHERE
  CASE WHEN `_count` > 0 THEN `_rv_at` ELSE `_rv_until` END > 0 AND `_rv_rows` <> 0
===
# totals over a join
# no sql
SELECT s.w, SUM(r.x * s.y) AS total FROM r JOIN s ON r.k = s.k GROUP BY s.w
---
mode: summary
columns: w, total
operator: GROUP BY s.w | linear | accumulators per group for SUM(r.x * s.y)
operator: join of r, s | linear | 2 terms, one per input
term: r | kept | starts at the delta
term: s | kept | starts at the delta
reads: r delta, r old, s delta, s old
groups: k1 string, _rv_rows bigint, _rv_n1 bigint, _rv_s2 decimal(38,2)
===
# dates and booleans as keys
# no sql
SELECT f, d, COUNT(*) AS n FROM e GROUP BY f, d
---
mode: summary
columns: f, d, n
operator: GROUP BY e.f, e.d | linear | accumulators per group for COUNT(*)
reads: e delta
groups: k1 boolean, k2 date, _rv_rows bigint
===
# COUNT of a constant
# no sql
SELECT COUNT(1) AS all_rows, SUM(2) AS twice FROM r
---
mode: summary
columns: all_rows, twice
operator: grand total | linear | accumulators per group for COUNT(1), SUM(2)
operator: expressions | linear | row by row
reads: r delta
groups: _rv_rows bigint, _rv_n1 bigint, _rv_n2 bigint, _rv_s3 bigint
===
# a total over a union
# no sql
SELECT k, COUNT(*) AS n FROM (SELECT k FROM r UNION ALL SELECT k FROM s) AS u GROUP BY k
---
mode: summary
columns: k, n
operator: GROUP BY u.k | linear | accumulators per group for COUNT(*)
operator: UNION ALL | linear | the deltas of both sides
reads: r delta, s delta
groups: k1 int, _rv_rows bigint
===
# a total over totals
# no sql
SELECT n, COUNT(*) AS groups FROM (SELECT g, COUNT(*) AS n FROM r GROUP BY g) AS q GROUP BY n
---
mode: summary
columns: n, groups
operator: GROUP BY q.n | linear | accumulators per group for COUNT(*)
operator: GROUP BY r.g | keyed | each touched group is aggregated again: below another operator, where no groups are stored
reads: r delta, r old
groups: k1 bigint, _rv_rows bigint
===
# a column list names the outputs
# columns: day, how many
# no sql
SELECT d, COUNT(*) FROM e GROUP BY d
---
mode: summary
columns: day, how many
operator: GROUP BY e.d | linear | accumulators per group for COUNT(*)
reads: e delta
groups: k1 date, _rv_rows bigint

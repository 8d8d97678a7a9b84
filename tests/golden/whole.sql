# a scalar subquery
SELECT k, (SELECT MAX(y) FROM s) AS high FROM r
---
mode: whole
columns: k, high
operator: query | whole | subquery (line 1): a subquery in an expression has no incremental rule yet
===
# a window function
SELECT k, RANK() OVER (PARTITION BY g ORDER BY x) AS place FROM r
---
mode: whole
columns: k, place
operator: query | whole | window function (line 1): window functions have no incremental rule yet
===
# the first three in a total order
SELECT k, g FROM r ORDER BY k, g LIMIT 3
---
mode: whole
columns: k, g
operator: query | whole | LIMIT (line 1): top-k has no incremental rule yet
===
# a semi join without an equality
SELECT r.k FROM r LEFT SEMI JOIN s ON r.k < s.k
---
mode: whole
columns: k
operator: query | whole | LEFT SEMI JOIN (line 1): a semi or anti join without an equality has no keys to recompute by
===
# an anti join without a condition
SELECT r.k FROM r LEFT ANTI JOIN s
---
mode: whole
columns: k
operator: query | whole | LEFT ANTI JOIN (line 1): a semi or anti join without an equality has no keys to recompute by
===
# an outer join without an equality
SELECT r.k, s.y FROM r LEFT JOIN s ON r.k < s.k
---
mode: whole
columns: k, y
operator: query | whole | LEFT JOIN (line 1): an outer join without an equality has no keys to recompute by
===
# grouping sets
SELECT k, g, COUNT(*) AS n FROM r GROUP BY ROLLUP (k, g)
---
mode: whole
columns: k, g, n
operator: query | whole | GROUPING SETS (line 1): grouping sets, cube and rollup have no incremental rule yet
===
# a generator
SELECT EXPLODE(ARRAY(k, g)) AS v FROM r
---
mode: whole
columns: v
operator: query | whole | generator (line 1): generators have no incremental rule yet
===
# LATERAL VIEW
SELECT k, v FROM r LATERAL VIEW EXPLODE(ARRAY(k, g)) AS v
---
mode: whole
columns: k, v
operator: query | whole | LATERAL VIEW (line 1): generators have no incremental rule yet
===
# a query without FROM
SELECT 1 AS one
---
mode: whole
columns: one
operator: query | whole | SELECT (line 1): a query without FROM reads no table
===
# a star as an argument
SELECT HASH(*) AS h FROM r
---
mode: whole
columns: h
operator: query | whole | * (line 1): a star as an argument stands for other columns below an incremental rule
===
# a window over time
SELECT WINDOW(d, '1 day') AS day FROM e
---
mode: whole
columns: day
operator: query | whole | time window (line 1): windows over time have no incremental rule yet
===
# every grouping set at once
SELECT COUNT(*) AS n FROM r GROUP BY CUBE (k, g)
---
mode: whole
columns: n
operator: query | whole | GROUPING SETS (line 1): grouping sets, cube and rollup have no incremental rule yet
===
# a subquery with two columns of one name
SELECT q.x FROM (SELECT r.k, s.k, r.x FROM r JOIN s ON r.k = s.k) AS q
---
mode: whole
columns: x
operator: query | whole | SELECT (line 1): two of its columns have the same name
===
# an ordered-set aggregate
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x) AS middle FROM r
---
mode: whole
columns: middle
operator: query | whole | WITHIN GROUP (line 1): ordered-set aggregates have no incremental rule yet
===
# fields named after columns
SELECT ARRAYS_ZIP(w, w) AS z FROM r
---
mode: whole
columns: z
operator: query | whole | arrays_zip (line 1): it names its fields after the columns it is given
===
# some rows
SELECT k FROM r LIMIT 3
---
mode: whole
columns: k
operator: query | whole | LIMIT (line 1): top-k has no incremental rule yet
operator: LIMIT (line 1) | settled | where its order leaves a choice, rows are taken by `k`
===
# numbered rows
SELECT ROW_NUMBER() OVER (ORDER BY k) AS n FROM r
---
mode: whole
columns: n
operator: query | whole | window function (line 1): window functions have no incremental rule yet
===
# a frame of rows
SELECT SUM(x) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM r
---
mode: whole
columns: s
operator: query | whole | window function (line 1): window functions have no incremental rule yet
operator: a window frame of ROWS (line 1) | settled | where its order leaves a choice, rows are taken by `r`.`x`

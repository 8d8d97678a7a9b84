# chance
SELECT k, RAND() AS luck FROM r
---
refused: not_deterministic
A view cannot use rand: its value is random. (line 1, column 11)
===
# a clock
SELECT k FROM r
WHERE CURRENT_TIMESTAMP > '2024-01-01'
---
refused: not_deterministic
A view cannot use current_timestamp: its value is the time at which it runs. (line 2, column 7)
===
# a row's place
SELECT INPUT_FILE_NAME() AS file FROM r
---
refused: not_deterministic
A view cannot use input_file_name: its value depends on where a row is stored or processed. (line 1, column 8)
===
# a function that Spark does not have
SELECT MY_UDF(x) AS y FROM r
---
refused: unsupported
A view cannot use my_udf: it is not one of Spark's own functions, so nothing is known of its value. (line 1, column 8)
===
# a sample
SELECT k FROM r TABLESAMPLE (10 PERCENT)
---
refused: not_deterministic
A view cannot use TABLESAMPLE: which rows it takes is random. (line 1, column 30)
===
# a script
SELECT TRANSFORM(k) USING 'cat' AS b FROM r
---
refused: not_deterministic
A view cannot use TRANSFORM … USING: it runs code or reads state that rollview cannot see. (line 1, column 8)
===
# a parameter
SELECT :p AS p FROM r
---
refused: unsupported
A view cannot use the parameter :p: nothing gives it a value. (line 1, column 8)
===
# USING after a FULL join by name
SELECT k FROM r FULL JOIN s USING (k) JOIN t USING (k)
---
refused: unsupported
A view cannot use JOIN USING after a RIGHT or FULL join by name. (line 1, column 44)
hint: Write ON, or the first join as a subquery.
===
# a collation in the result
SELECT w COLLATE UTF8_LCASE AS w, COUNT(*) AS n FROM r GROUP BY w COLLATE UTF8_LCASE
---
refused: not_deterministic
A view cannot use COLLATE in its result: which of the different strings that a collation takes for equal a group shows is chance. (line 1, column 8)
hint: Compare with COLLATE, and show lower(x).
===
# a collation in the result, by its function
SELECT collate(w, 'UTF8_LCASE') AS w FROM r
---
refused: not_deterministic
A view cannot use COLLATE in its result: which of the different strings that a collation takes for equal a group shows is chance. (line 1, column 8)
hint: Compare with COLLATE, and show lower(x).
===
# an ON behind another join
SELECT r.k FROM r LEFT JOIN s JOIN t ON s.k = t.k ON r.k = s.k
---
refused: unsupported
A view cannot use LEFT JOIN whose ON stands behind another join. (line 1, column 29)
hint: Write the inner join in parentheses.

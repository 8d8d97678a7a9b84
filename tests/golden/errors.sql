# an unknown table
SELECT k FROM
  rr
---
refused: not_found
There is no table or view 'rr'.
hint: Close names: r.
===
# an unknown column
SELECT k,
  nope FROM r
---
refused: sql
There is no column 'nope'. (line 2, column 3)
hint: Columns here: g, k, w, x.
===
# an unknown column of a known table
SELECT r.nope FROM r
---
refused: sql
There is no column 'nope'. (line 1, column 8)
hint: Columns here: g, k, w, x.
===
# an ambiguous column
SELECT k FROM r JOIN s ON r.k = s.k
---
refused: sql
Column 'k' is ambiguous: it is in 'r' and 's'. (line 1, column 8)
hint: Write the table's name or alias before it.
===
# an unknown alias
SELECT q.k FROM r
---
refused: sql
There is no table or alias 'q' here. (line 1, column 8)
hint: FROM has: r.
===
# an expression without a name
SELECT k, x + 1 FROM r
---
refused: sql
The expression x + 1 has no name. (line 1, column 11)
hint: Write AS name after it.
===
# two columns of one name
SELECT r.k, s.k FROM r JOIN s ON r.k = s.k
---
refused: sql
View 'v' has two columns named 'k'.
hint: Give one of them another name with AS.
===
# a star that doubles a name
SELECT * FROM r JOIN s ON r.k = s.k
---
refused: sql
View 'v' has two columns named 'k'.
hint: Give one of them another name with AS.
===
# a name that belongs to rollview
SELECT k AS _count FROM r
---
refused: invalid_name
'_count' cannot be the name of a column: '_count', '_csn' and names that start with '_rv_' belong to rollview.
===
# another name that belongs to rollview
SELECT k AS _rv_x FROM r
---
refused: invalid_name
'_rv_x' cannot be the name of a column: '_count', '_csn' and names that start with '_rv_' belong to rollview.
===
# a file as a table
SELECT k FROM parquet.`/tmp/x`
---
refused: unsupported
'parquet.`/tmp/x`' is not a table or view of this warehouse. (line 1, column 15)
hint: Views read tables and views by their plain names; files and other catalogs come in as tables.
===
# another catalog
SELECT k FROM elsewhere.r
---
refused: unsupported
'elsewhere.r' is not a table or view of this warehouse. (line 1, column 15)
hint: Views read tables and views by their plain names; files and other catalogs come in as tables.
===
# a table function
SELECT id FROM RANGE(10)
---
refused: unsupported
'RANGE(10)' is not a table or view of this warehouse. (line 1, column 16)
hint: Views read tables and views by their plain names; files and other catalogs come in as tables.
===
# time travel
SELECT k FROM r VERSION AS OF 3
---
refused: unsupported
A view always reads the newest state; time travel has no place in it. (line 1, column 15)
===
# broken SQL
SELECT k FROM r WHERE
---
refused: sql
The SQL is not right near 'WHERE': something is missing after it. (line 1, column 21)
===
# a string without an end
SELECT 'abc FROM r
---
refused: sql
The SQL is not right: Error tokenizing 'SELECT 'abc FROM '
===
# the fields of a struct by star
SELECT w.* FROM r
---
refused: unsupported
The columns that `r`.`w`.* stands for are not known here. (line 1, column 8)
hint: Write the columns or fields one by one, each with a name.
===
# the wrong number of names
# columns: a, b
SELECT k FROM r
---
refused: sql
View 'v' names 2 columns, but its query has 1.
===
# two statements
SELECT k FROM r; SELECT k FROM s
---
refused: sql
Expected one statement, found 2.
===
# no query at all
DROP TABLE r
---
refused: sql
Expected a query.
===
# a place that is not in the list
SELECT k FROM r GROUP BY 3
---
refused: sql
The query does not resolve: Unknown output column: 3.
===
# an alias used twice
SELECT a.k FROM r AS a JOIN s AS a ON TRUE
---
refused: sql
The query does not resolve: Alias already used: a.
===
# a name that USING does not find
SELECT k FROM r JOIN s USING (nope)
---
refused: sql
The query does not resolve: Cannot automatically join: nope.
===
# an ambiguous column that a third table does not have
SELECT g FROM r JOIN s ON r.k = s.k JOIN t ON s.k = t.k
---
refused: sql
Column 'g' is ambiguous: it is in 'r' and 't'. (line 1, column 8)
hint: Write the table's name or alias before it.
===
# an unknown alias after a known one
SELECT r.k, q.k FROM r
---
refused: sql
There is no table or alias 'q' here. (line 1, column 13)
hint: FROM has: r.
===
# a function in place of a table
SELECT id FROM range(3)
---
refused: unsupported
'RANGE(3)' is not a table or view of this warehouse. (line 1, column 16)
hint: Views read tables and views by their plain names; files and other catalogs come in as tables.
===
# a table of elsewhere
SELECT k FROM elsewhere.r
---
refused: unsupported
'elsewhere.r' is not a table or view of this warehouse. (line 1, column 15)
hint: Views read tables and views by their plain names; files and other catalogs come in as tables.
===
# an older version of a table
SELECT k FROM r VERSION AS OF 3
---
refused: unsupported
A view always reads the newest state; time travel has no place in it. (line 1, column 15)
===
# a table at a time
SELECT k FROM r TIMESTAMP AS OF '2026-01-01'
---
refused: unsupported
A view always reads the newest state; time travel has no place in it. (line 1, column 15)

-- Sum of amounts. PostgreSQL's sum of bigint is numeric, whose arithmetic takes ten times as long.
--
-- Overflow is an error, as everywhere with bigint.
create or replace aggregate ledger_sum(bigint) (
  sfunc = int8pl,
  stype = bigint,
  parallel = safe,
  combinefunc = int8pl
);

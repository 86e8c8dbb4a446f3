create or replace procedure @name@(reports string, weight string, `by` string)
options (strict_mode = false)
begin
  execute immediate format("""
    create or replace temp table cells as
    select grp, if(w between 0 and 1e30, to_hex(report), '') as hex, cast(sum(if(w = 0, 0, 1)) as float64) as n, sum(w) as w, sum(w * w) as ww
    from (select report, coalesce(cast(%s as string), '') as grp, cast(%s as float64) as w from `%s`) group by 1, 2""",
    coalesce('`' || `by` || '`', 'null'), coalesce('`' || weight || '`', '1'), reports);
  with answers as (select * from unnest(array<struct<place int64, answer string, digit int64, code string, q float64, gap float64,
    at_zero float64, at_one float64>>[@answers@])),
  @shares@;
end;

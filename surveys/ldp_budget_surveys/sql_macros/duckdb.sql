create or replace macro @name@(reports, weight := null, "by" := null) as table
with answers(place, answer, digit, code, q, gap, at_zero, at_one) as (values @answers@),
counted as (select * from query(
  'select grp, report, w between 0 and 1e30 as ok, sum(case when w = 0 then 0 else 1 end)::double as n, sum(w) as w, sum(w * w) as ww from (select report, '
  || 'coalesce(' || coalesce('"' || replace("by", '"', '""') || '"', 'null') || '::varchar, '''') as grp, '
  || coalesce('"' || replace(weight, '"', '""') || '"', '1') || '::double as w '
  || 'from query_table(''' || replace(reports, '''', '''''') || ''')) group by all')),
cells as (
  select grp, n, w, ww, case when ok then case typeof(report) when 'BLOB' then lower(hex(report))
    when 'VARCHAR' then lower(hex(unhex(report::varchar))) else @number@ end else '' end as hex from counted),
@shares@;

{% macro @name@(reports, weight=none, by=none) %}
with answers(place, answer, digit, code, q, gap, at_zero, at_one) as (values @answers@),
cells as (
  select grp, case when w between 0 and 1e30 then {{ "encode(report, 'hex')" if target.type == "postgres" else "lower(hex(report))" }}
    else '' end as hex, cast(sum(case when w = 0 then 0 else 1 end) as double precision) as n, sum(w) as w, sum(w * w) as ww
  from (select report, coalesce(cast({{ adapter.quote(by) if by else "null" }} as varchar), '') as grp,
    cast({{ adapter.quote(weight) if weight else "1" }} as double precision) as w from {{ reports }}) as each_report
  group by 1, 2),
@shares@
{% endmacro %}

create or replace function @cells@(reports regclass, weight text, by text)
returns table (grp text, hex text, n float8, w float8, ww float8) language plpgsql stable as $ldp$
declare kind text := (select format_type(atttypid, null) from pg_attribute where attrelid = reports and attname = 'report');
begin return query execute format(
  'select grp, case when w between 0 and 1e30 then %s else '''' end, sum(case when w = 0 then 0 else 1 end)::float8, sum(w), sum(w * w) '
  'from (select report, coalesce(%s::text, '''') as grp, %s::float8 as w from %s) as each_report group by 1, 2',
  case when kind = 'bytea' then 'encode(report, ''hex'')'
    when kind in ('text', 'character varying') then 'encode(decode(report, ''hex''), ''hex'')' else @numberliteral@ end,
  coalesce(quote_ident(by), 'null'), coalesce(quote_ident(weight), '1'), reports);
end $ldp$;
create or replace function @name@(reports regclass, weight text default null, by text default null)
returns table (answer text, count float8, share float8, std_error float8, "group" text, respondents bigint,
  population_share_error float8, respondents_share_error float8, left_out bigint) language sql stable as @tag@
with answers(place, answer, digit, code, q, gap, at_zero, at_one) as (values @answers@),
cells as (select * from @cells@(reports, weight, by)),
@shares@
@tag@;

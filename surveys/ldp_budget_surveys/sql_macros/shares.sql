kept as (select * from cells where n > 0 and @valid@),
totals as (select grp, sum(n) as n, sum(w) as w, sum(ww) as ww, sum(sum(n)) over () as everybody from kept group by grp),
support as (select c.grp, a.place, sum(c.w) as w, sum(c.ww) as ww from kept c join answers a on @says@ group by c.grp, a.place),
parts as (
  select t.*, a.*, coalesce(s.ww, 0) as held, (coalesce(s.w, 0) / t.w - a.q) / a.gap as share,
    (1 - a.q) / a.gap as one, -a.q / a.gap as zero, a.at_one - a.at_zero as slope, least(a.at_zero, a.at_one) as floor
  from totals t cross join answers a left join support s on s.grp = t.grp and s.place = a.place),
errors as (
  select *, sqrt(greatest(held * (at_zero + slope * one) + (ww - held) * (at_zero + slope * zero), ww * floor)) as respondents_error,
    sqrt(greatest(everybody / nullif(everybody - 1, 0) * (held * power(one - share, 2) + (ww - held) * power(zero - share, 2)),
      ww * floor, 2 * power(ww / w, 2) * (at_one + 1))) as population_error
  from parts)
select answer, share * w as count, share, case when @alone@ then respondents_error else population_error end as std_error,
  grp as "group", cast(n as bigint) as respondents, population_error / w as population_share_error,
  respondents_error / w as respondents_share_error,
  (select coalesce(cast(sum(c.n) as bigint), 0) from cells c) - cast(everybody as bigint) as left_out
from errors order by grp, place

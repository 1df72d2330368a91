select case when released then shop else 'other' end as shop, count(*) as sales
from {{ voxpop_released(ref('sales'), ref('released_shops'), ['shop']) }} as marked
group by 1

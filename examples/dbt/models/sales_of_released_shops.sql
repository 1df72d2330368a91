select shop, count(*) as sales
from {{ voxpop_filter(ref('sales'), ref('released_shops'), ['shop']) }} as kept
group by shop

{#- Rows of a relation by released keys. The keys are public; the rows stay private.

    table: the private relation, such as ref('sales')
    keys: the relation of released keys, such as ref('released_shops')
    columns: names of the columns of a key, such as ['shop'] -#}

{% macro voxpop_match(columns) -%}
{% for column in columns %}t.{{ adapter.quote(column) }} = k.{{ adapter.quote(column) }}{% if not loop.last %} and {% endif %}{% endfor %}
{%- endmacro %}

{#- Only the rows whose key was released. -#}
{% macro voxpop_filter(table, keys, columns) -%}
(select t.* from {{ table }} as t where exists (select 1 from {{ keys }} as k where {{ voxpop_match(columns) }}))
{%- endmacro %}

{#- All rows, and one more column: whether the key was released. Group by `case when released then key else 'other' end`. -#}
{% macro voxpop_released(table, keys, columns) -%}
(select t.*, exists (select 1 from {{ keys }} as k where {{ voxpop_match(columns) }}) as released from {{ table }} as t)
{%- endmacro %}

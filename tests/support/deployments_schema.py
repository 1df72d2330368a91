"""Fields, types and values that the deployments registry permits, as a JSON schema.

The schema contains the rules of schemas/deployments-schema.yaml in github.com/opendp/deployments-registry-data at
commit 057e5d81, the newest available commit, without its explanations. The registry checks records with the same
validator.
"""


def record(required: str = "", optional: str = "", **properties: object) -> dict[str, object]:
    """Return the schema of an object with exactly the given string fields and the given other fields."""
    texts = {name: {"type": "string"} for name in f"{required} {optional}".split()}
    fields = {name.rstrip("_"): schema for name, schema in properties.items()}
    needed = [*required.split(), *(name for name in fields if f"{name}_" in properties)]
    return {"type": "object", "additionalProperties": False, "required": needed, "properties": {**texts, **fields}}


def one_of(*values: object) -> dict[str, object]:
    """Return the schema of one of several values."""
    return {"type": "integer" if isinstance(values[0], int) else "string", "enum": list(values)}


def several(items: dict[str, object]) -> dict[str, object]:
    """Return the schema of a non-empty list."""
    return {"type": "array", "items": items, "minItems": 1}


ANYTHING: dict[str, object] = {}
TEXT_OR_NUMBER = {"type": ["string", "number"]}
BIBLIOGRAPHY = record(
    optional="address annote author booktitle doi editor email howpublished institution journal note organization"
    " publisher school type series title url",
    **dict.fromkeys(
        ("chapter", "edition", "issn", "isbn", "month", "number", "pages", "volume", "year"), TEXT_OR_NUMBER
    ),
)
PUBLICATIONS = (
    "article book booklet conference inbook incollection inproceedings manual mastersthesis misc phdthesis"
    " proceedings techreport unpublished"
)
EVIDENCE = one_of(
    "Peer-reviewed publication",
    "Formal publication by the deploying organization",
    "Authorized organizational attestation",
    "Other public source",
)
CURATOR = record("data_curator_name", data_curator_type_=one_of("Government", "Industry", "Nonprofit"))
PRODUCTS = one_of(
    "Summary statistics",
    "Machine learning model",
    "Dataset",
    "Synthetic data",
    "Interactive API",
    "SQL queries",
)
STATUS = one_of(
    "Converted",
    "Draft",
    "Pending",
    "Changes Required",
    "Approved",
    "Approved (Update Requested)",
    "Approved (Pending)",
)
DEPLOYMENT = record(
    basic_=record(
        "name description intended_use data_product_region",
        data_curators_=several({**CURATOR, "additionalProperties": True}),
        data_product_type_=PRODUCTS,
        data_product_sector=one_of("Technology", "Healthcare", "Education", "Government", "Energy", "Finance"),
        publication_date_={"type": "string", "format": "date"},
    ),
    dp_variant=record(
        optional="data_domain unprotected_quantities",
        variant_name=one_of("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"),
    ),
    privacy_loss=record(
        optional="privacy_unit privacy_unit_details",
        number_of_privacy_units={"type": "integer"},
        privacy_parameters=record(
            epsilon={"type": "number"}, delta={"type": ["number", "string"]}, rho={"type": "number"}
        ),
        privacy_parameters_details=ANYTHING,
    ),
    deployment_model=record(
        optional="model_name_details trust_assumptions release_type_details data_source_type_details"
        " access_type_details",
        model_name=one_of("Local", "Central", "Shuffle", "Federated", "Varies"),
        actors=ANYTHING,
        release_type=one_of("One release", "Many releases"),
        data_source_type=one_of("Static", "Dynamic"),
        access_type=one_of("Interactive", "Non-interactive"),
    ),
    implementation=record(
        optional="preprocessing_and_hyperparameter_tuning mechanisms composition post_processing justification",
        utility=ANYTHING,
        additional_information=ANYTHING,
    ),
    administrative_=record(
        evidence_sources={
            "type": "object",
            "patternProperties": {
                r"^\w+$": {
                    "oneOf": [
                        record(**{"evidence_source_type": EVIDENCE, kind: BIBLIOGRAPHY})
                        for kind in PUBLICATIONS.split()
                    ]
                }
            },
        },
        status_=STATUS,
        registry_authors_=several({"type": "string"}),
        tier_=one_of(1, 2, 3),
    ),
)
SCHEMA = record("url_slug", deployment_=DEPLOYMENT)

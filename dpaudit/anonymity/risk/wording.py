"""An assessment in words: for the terminal, and as the sentences of the report."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]
_WHO = {
    "prosecutor": "knows that the person is in the table",
    "journalist": "looks for anybody, and knows the population",
    "marketer": "links as many people as possible",
}


def one_in(risk: float) -> str:
    """Return a risk in words.

    >>> one_in(1.0), one_in(0.5), one_in(0.0906), one_in(0.0)
    ('certain', '1 in 2', '1 in 11', 'none')
    """
    if risk <= 0:
        return "none"
    return "certain" if risk >= 1 else f"1 in {round(1 / risk, 1):g}" if risk > 0.2 else f"1 in {round(1 / risk)}"


def percent(share: float) -> str:
    """Return a share in per cent.

    >>> percent(0.12345), percent(1.0)
    ('12.3 %', '100 %')
    """
    return f"{100 * share:.3g} %"


def people(count: int) -> str:
    """Return a number of people.

    >>> people(1), people(3)
    ('1 person', '3 people')
    """
    return "1 person" if count == 1 else f"{count} people"


def singling_out(document: Document) -> list[str]:
    """Return the sentences on singling out."""
    unique, sentences = document["uniqueness"], []
    sentences.append(f"{unique['unique']} of {document['records']} records ({percent(unique['share'])}) are unique.")
    for entry in document["attackers"]:
        key = ", ".join(f"{name}={value}" for name, value in entry["key"].items())
        sentences.append(
            f"An attacker who {_WHO[entry['attacker']]} ({entry['attacker']}) finds a record with probability "
            f"{entry['average']:.3g} on average, and {entry['maximum']:.3g} ({one_in(entry['maximum'])}) in the worst class, "
            f"number {entry['class']} ({key}); {percent(entry['above'])} of the records are above {document['threshold']:.3g}."
        )
    if "k_map" in document:
        sentences.append(f"Every record fits at least {people(document['k_map'])} of the population (k-map).")
    if "presence" in document:
        presence = document["presence"]
        sentences.append(
            f"A person of the population is in the table with probability {presence['lower']:.3g} to {presence['upper']:.3g}; "
            f"{people(presence['absent'])} certainly not (delta-presence)."
        )
    if "population_uniqueness" in document:
        found = document["population_uniqueness"]
        sentences.append(
            f"About {found['estimate']:.3g} of {people(found['population'])} ({percent(found['share'])}) are unique in the "
            f"population, by the model of {found['model']} (pitman {found['pitman']:.4g}, zayatz {found['zayatz']:.4g}, "
            f"snb {found['snb']:.4g}). This is an estimate, not a bound."
        )
    return sentences


def linkability(document: Document) -> list[str]:
    """Return the sentences on linkage with an external table, and with earlier releases."""
    sentences = []
    if "linkage" in document:
        found = document["linkage"]
        assumption = ", knowing that all of them are in the table," if found["everyone"] else ""
        sentences.append(
            f"Linking an external table of {people(found['people'])}{assumption} finds records for {found['linked']}, and "
            f"exactly one record for {found['singled_out']}; guessing links {found['expected']:.4g}."
        )
        if found["present"] is not None:
            sentences.append(
                f"{found['present']} of them are in the table: {found['right']} of the {found['singled_out']} single links are "
                f"right, and {found['missed']} records were missed."
            )
        for entry in found["disclosures"]:
            checked = "" if entry["right"] is None else f", {entry['right']} of them rightly"
            sentences.append(
                f"The attack learns {entry['attribute']} of {people(entry['disclosed'])}{checked}; guessing the most frequent "
                f"value is right for {percent(entry['baseline'])}."
            )
    else:
        sentences.append("No external table was given, so linkage was not tried.")
    return sentences


def inference(document: Document) -> list[str]:
    """Return the sentences on what can be inferred about a person."""
    sentences = [
        f"{entry['attribute']}: {entry['disclosed']} of {document['records']} records ({percent(entry['share'])}) are in classes "
        "with one value; to know the class of a person is to know theirs. "
        f"The l-diversity is {entry['l']}, and the t-closeness {entry['t']:.3g}."
        for entry in document["inference"]
    ]
    for entry in document.get("releases", []):
        undecided = f" ({entry['undecided']} were not decided)" if entry["undecided"] else ""
        each = ", ".join(map(str, entry["alone"]))
        kept = f"{entry['m']}-invariant" if entry["m"] else "not m-invariant"
        sentences.append(
            f"All {len(entry['alone'])} releases together disclose {entry['attribute']} of {entry['disclosed']} of "
            f"{people(entry['people'])}{undecided}; each release alone: {each}. They are {kept}."
        )
    return sentences or ["No sensitive column was named, so inference was not examined."]


def cost(document: Document) -> list[str]:
    """Return the sentences on what the release costs."""
    found = document["cost"]
    records = f"{found['suppressed_records']} records ({percent(found['suppressed_share'])})"
    sentences = [
        f"{records} and {found['suppressed_cells']} cells are suppressed, {found['withheld']} records are withheld."
    ]
    if "granularity" in found:
        columns = ", ".join(f"{name} {lost:.3g}" for name, lost in found["granularity_by_column"].items())
        sentences.append(
            f"Information loss: {found['granularity']:.3g} by granularity ({columns}), {found['entropy']:.3g} by entropy."
        )
    sentences += [
        f"A class predicts {name} wrongly for {percent(wrong)} of the records (classification metric)."
        for name, wrong in found["classification"].items()
    ]
    return sentences


def requirements(document: Document) -> list[str]:
    """Return a sentence for each requirement."""
    return [
        f"{entry['name']} = {entry['value']:.4g} {entry['sense']} {entry['required']:.4g}: {'met' if entry['met'] else 'NOT met'}"
        for entry in document["requirements"]
    ]


SECTIONS = (
    ("Singling out", "Can a person's record be found?", singling_out),
    ("Linkability", "Can records be linked with what is known elsewhere?", linkability),
    ("Inference", "Can something be learned about a person?", inference),
    ("Cost", "What did the protection cost?", cost),
)


def text(document: Document) -> list[str]:
    """Return the lines that the terminal shows."""
    known = ", ".join(document["quasi_identifiers"])
    lines = [
        f"{document['table']}: {document['records']} records, {document['classes']} classes (quasi-identifiers {known})"
    ]
    for title, question, sentences in SECTIONS:
        lines += ["", f"{title}: {question}", *(f"  {sentence}" for sentence in sentences(document))]
    if document["uniqueness"]["combinations"]:
        lines += ["", "Most identifying combinations"]
        lines += [
            f"  {percent(entry['share']):>7} unique  {', '.join(entry['columns'])}"
            for entry in document["uniqueness"]["combinations"]
        ]
    if document["requirements"]:
        verdict = "everything required is met" if document["met"] else "NOT everything required is met"
        lines += ["", *requirements(document), verdict]
    return lines

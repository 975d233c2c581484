"""Rules about YAML, schema and waivers. Documented here, checked elsewhere.

SG00x comes from `generator.sitefile.source`, SG011 from `generator.sitefile.lint`, SG013 from
`generator.sitefile.extending`, SG10x from `generator.sitefile.schema`, SG190 from
`generator.rules.waivers`, SG880 from `generator.sitefile.unfinished`.
"""

from generator.diagnostics import Severity
from generator.rules.registry import documented_of_sites


@documented_of_sites("SG001")
def yaml() -> None:
    """A site file is YAML.

    Other faults can be found only once the file can be read.

    Bad:
        cabling:
          - endpoints: [spark1:p0, spark2:p0

    Good:
        cabling:
          - endpoints: [spark1:p0, spark2:p0]
    """


@documented_of_sites("SG002")
def tabs() -> None:
    """Indentation is made of spaces.

    YAML does not allow tabs for indentation, because their width is not defined.

    Source: YAML 1.2.2, section 6.1.
    """


@documented_of_sites("SG003")
def duplicate_key() -> None:
    """A key is written once.

    YAML readers differ in which of the two they use, and most of them do not complain.

    Source: YAML 1.2.2, section 3.2.1.1 (keys of a mapping are unique).

    Bad:
        topology:
          kind: direct
          mtu: 9000
          mtu: 1500

    Good:
        topology:
          kind: direct
          mtu: 9000
    """


@documented_of_sites("SG004")
def merge_keys() -> None:
    """Merge keys, `<<`, are not read.

    YAML 1.2 has none, so a file that uses them means different things to different readers. Put
    values for all nodes into `defaults`.

    Bad:
        nodes:
          - &first
            name: spark1
            memory_gb: 128
          - <<: *first
            name: spark2

    Good:
        defaults:
          memory_gb: 128
        nodes:
          - name: spark1
          - name: spark2
    """


@documented_of_sites("SG005")
def one_document() -> None:
    """A site file is a single document.

    A `---` line after the first key starts another one.

    Bad:
        name: lab
        ---

    Good:
        name: lab
    """


@documented_of_sites("SG006")
def encoding() -> None:
    """A site file is UTF-8 text without control characters.

    A byte order mark and any line endings are fine. UTF-16, Latin-1, terminal escapes, NUL, and
    characters that only some readers treat as line breaks are not: what a person sees would differ
    from what the file means.
    """


@documented_of_sites("SG007")
def too_much() -> None:
    """A site file is no larger than a site can be.

    The limits are 4 MiB, 500,000 values with aliases expanded, and 40 levels. A site of 244 nodes
    takes some 60 KiB; a larger file is something else, or was made to exhaust its reader.
    """


@documented_of_sites("SG008")
def endless_alias() -> None:
    """An alias is not inside the node that it repeats.

    Expanded, the value would be infinite.

    Bad:
        engine:
          args:
            cudagraph-capture-sizes: &sizes [1, *sizes]

    Good:
        engine:
          args:
            cudagraph-capture-sizes: [1, 2]
    """


@documented_of_sites("SG009")
def text_keys() -> None:
    """A key is text.

    YAML allows lists and mappings as keys; a site file has no use for them.

    Bad:
        engine:
          env:
            ? [VLLM_LOGGING_LEVEL]
            : DEBUG

    Good:
        engine:
          env:
            VLLM_LOGGING_LEVEL: DEBUG
    """


@documented_of_sites("SG010")
def tags() -> None:
    """A site file has no tags.

    The schema defines the type of each value; a tag could only contradict it.

    Bad:
        version: !!int 1

    Good:
        version: 1
    """


@documented_of_sites("SG011", Severity.WARNING)
def style() -> None:
    """A site file follows yamllint's default style.

    The finding ends with the name of yamllint's rule. Comments, line length, `---` and `yes` are up
    to the author. Only `sparkgen validate` checks the style.

    Source: yamllint, "Rules".

    Bad:
        name:    lab

    Good:
        name: lab
    """


@documented_of_sites("SG012")
def unusual_spaces() -> None:
    """Keys, colons and dashes have plain spaces around them.

    Web pages and word processors produce no-break and zero-width spaces. They look like spaces, but
    YAML treats them as letters. They are allowed in texts such as `description`.

    Source: YAML 1.2.2, section 6.1 (indentation is made of spaces, U+0020).
    """


@documented_of_sites("SG013")
def base() -> None:
    """The base of a site is a file below the site's folder, and extends no other.

    Mappings are merged by key; lists and all other values of the site replace those of the base.
    Findings name the file that they are about. A second level would hide where a value comes from,
    and a file elsewhere is not in the repository that is reviewed.

    Bad:
        extends: ../../rack.yaml

    Good:
        extends: bases/rack.yaml
    """


@documented_of_sites("SG101")
def known_keys() -> None:
    """Every key is part of the site format.

    A misspelt key would otherwise be a setting that silently does nothing.

    Bad:
        engine:
          memory_utilisation: 0.8

    Good:
        engine:
          memory_utilization: 0.8
    """


@documented_of_sites("SG102")
def required_keys() -> None:
    """No required key is missing.

    Bad:
        nodes:
          - management: {address: 10.0.0.11/24}
          - name: spark2

    Good:
        nodes:
          - name: spark1
            management: {address: 10.0.0.11/24}
          - name: spark2
    """


@documented_of_sites("SG103")
def kinds_of_values() -> None:
    """A value has the type that its key takes.

    Types are text, number, true or false, list and mapping. Values are read by the rules of YAML
    1.2, so `yes` is text, and so is `011`, which some readers take for octal.

    Bad:
        topology:
          kind: direct
          mtu: jumbo

    Good:
        topology:
          kind: direct
          mtu: 9000
    """


@documented_of_sites("SG104")
def choices() -> None:
    """A value is one of its key's choices.

    Bad:
        topology:
          kind: mesh

    Good:
        topology:
          kind: ring
    """


@documented_of_sites("SG105")
def ranges() -> None:
    """A number is within its key's range.

    Bad:
        topology:
          kind: direct
          mtu: 90000

    Good:
        topology:
          kind: direct
          mtu: 9000
    """


@documented_of_sites("SG106")
def forms() -> None:
    """A text has the form that its key requires.

    Names become hosts, folders and units, addresses go into netplan, and flags and variables become
    command lines: each accepts only what is valid and safe there.

    Bad:
        nodes:
          - name: Spark_1
          - name: spark2

    Good:
        nodes:
          - name: spark1
          - name: spark2
    """


@documented_of_sites("SG107")
def lengths() -> None:
    """A text or a list is as long as its key allows.

    Bad:
        cabling:
          - endpoints: [spark1:p0]

    Good:
        cabling:
          - endpoints: [spark1:p0, spark2:p0]
    """


@documented_of_sites("SG108")
def empty_values() -> None:
    """A key that is written has a value.

    Leave out a key that has no value; `null` and `~` are not values.

    Bad:
        engine:
          launcher:

    Good:
        engine:
          launcher: native
    """


@documented_of_sites("SG109")
def exclusive_keys() -> None:
    """Of two keys that exclude each other, only one is written.

    Bad:
        model:
          name: gpt-oss-120b
          source: openai/gpt-oss-120b

    Good:
        model:
          name: gpt-oss-120b
    """


@documented_of_sites("SG190", Severity.WARNING)
def useless_waiver() -> None:
    """A waiver names a warning that the site has.

    Any other waiver is left over or was never right: there is no such rule, the finding is an
    error, or it is at another place. A waiver names the rule and the place as the finding prints
    them, and gives a reason.

    Bad:
        waivers:
          - rule: SG701
            path: engine.bind
            reason: The lab has a firewall of its own

    Good:
        engine:
          bind: all
        waivers:
          - rule: SG701
            path: engine.bind
            reason: The lab has a firewall of its own
    """


@documented_of_sites("SG880")
def unfinished() -> None:
    """Every `TODO` is replaced.

    `import` writes `TODO` for what a site file needs and nothing states, and says above it what is
    missing. Such a file is not judged any further.
    """

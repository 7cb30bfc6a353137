"""XMI as different tools write it, and errors with their line."""

from __future__ import annotations

import pytest

from tests.support.executed_lines import count_executed_lines
from tests.support.paths import ROOT
from tidings.errors import DecodeProblem, TidingsError
from tidings.objects.model.class_model import (
    Association,
    Attribute,
    Cardinality,
    ChangeKind,
    End,
    ImplicitMark,
    MarkLimits,
    Model,
    ModelClass,
    PropagatesMark,
)
from tidings.objects.model.draft import ModelError
from tidings.objects.model.table_mapping import ForeignKey, LinkTable
from tidings.objects.readers.xmi_reader import read_xmi

HEAD = (
    '<xmi:XMI xmlns:xmi="http://www.omg.org/spec/XMI/20131001" xmlns:uml="http://www.omg.org/spec/UML/20131001" '
    'xmlns:t="http://example.org/Tidings">'
)
MARKS = "subscriber, implicit, propagates and stored"
PROFILE = ROOT / "examples/tidings.profile.uml"


def document(*rows: str, applied: str = "") -> bytes:
    """Build a document; its rows begin in line 3."""
    return "\n".join((HEAD, "<uml:Model>", *rows, "</uml:Model>", applied, "</xmi:XMI>")).encode()


def cls(name: str, inside: str = "") -> str:
    return f'<packagedElement xmi:type="uml:Class" xmi:id="{name}" name="{name}">{inside}</packagedElement>'


def association(id: str, first: str, last: str) -> str:
    """Build an association that owns both ends and gives their cardinalities."""
    ends = "".join(
        f'<ownedEnd xmi:id="{id}.{at}" type="{end}"><lowerValue value="0"/><upperValue value="*"/></ownedEnd>'
        for at, end in enumerate((first, last))
    )
    return (
        f'<packagedElement xmi:type="uml:Association" xmi:id="{id}" name="{id}" memberEnd="{id}.0 {id}.1">'
        f"{ends}</packagedElement>"
    )


def read_error(body: bytes) -> str:
    with pytest.raises(TidingsError) as caught:
        read_xmi(body)
    return caught.value.message()


def test_read_xmi_of_enterprise_architect() -> None:
    """The target is first, types and ends are elements, -1 means any number.

    An extension repeats the model.
    """
    body = """<?xml version="1.0" encoding="windows-1252"?>
<xmi:XMI xmi:version="2.1" xmlns:uml="http://schema.omg.org/spec/UML/2.1" xmlns:xmi="http://schema.omg.org/spec/XMI/2.1"
    xmlns:thecustomprofile="http://www.sparxsystems.com/profiles/thecustomprofile/1.0">
  <xmi:Documentation exporter="Enterprise Architect" exporterVersion="6.5"/>
  <uml:Model xmi:type="uml:Model" name="EA_Model" visibility="public">
    <packagedElement xmi:type="uml:Package" xmi:id="EAPK_1" name="Universität">
      <packagedElement xmi:type="uml:Class" xmi:id="EAID_1" name="Hörer">
        <ownedAttribute xmi:type="uml:Property" xmi:id="EAID_2" name="alter" isStatic="false">
          <lowerValue xmi:type="uml:LiteralInteger" xmi:id="EAID_LI1" value="1"/>
          <type xmi:idref="EAJava_int"/>
        </ownedAttribute>
        <ownedAttribute xmi:type="uml:Property" xmi:id="EAID_3" name="zahl" isStatic="true"/>
        <ownedOperation xmi:id="EAID_4" name="crear" visibility="public"/>
        <generalization xmi:type="uml:Generalization" xmi:id="EAID_G" general="EAID_P"/>
      </packagedElement>
      <packagedElement xmi:type="uml:Class" xmi:id="EAID_P" name="Person"/>
      <packagedElement xmi:type="uml:Class" xmi:id="EAID_5" name="Kurs"/>
      <packagedElement xmi:type="uml:Association" xmi:id="EAID_6" name="besucht">
        <memberEnd xmi:idref="EAID_dst6"/>
        <memberEnd xmi:idref="EAID_src6"/>
        <ownedEnd xmi:type="uml:Property" xmi:id="EAID_src6" association="EAID_6" aggregation="none">
          <type xmi:idref="EAID_1"/>
          <lowerValue xmi:type="uml:LiteralInteger" xmi:id="l1" value="0"/>
          <upperValue xmi:type="uml:LiteralUnlimitedNatural" xmi:id="u1" value="-1"/>
        </ownedEnd>
        <ownedEnd xmi:type="uml:Property" xmi:id="EAID_dst6" association="EAID_6">
          <type xmi:idref="EAID_5"/>
          <lowerValue xmi:type="uml:LiteralInteger" xmi:id="l2" value="1"/>
          <upperValue xmi:type="uml:LiteralUnlimitedNatural" xmi:id="u2" value="-1"/>
        </ownedEnd>
      </packagedElement>
    </packagedElement>
    <thecustomprofile:Subscriber base_Class="EAID_P"/>
    <thecustomprofile:implicit base_Association="EAID_6" told="" kinds="update,delete"/>
    <thecustomprofile:table base_Class="EAID_5"/>
  </uml:Model>
  <xmi:Extension extender="Enterprise Architect" extenderID="6.5">
    <elements><element xmi:idref="EAID_1" xmi:type="uml:Class" name="Hörer" xmi:id="x"/></elements>
  </xmi:Extension>
</xmi:XMI>""".encode("windows-1252")
    limits = MarkLimits(None, frozenset((ChangeKind.UPDATE, ChangeKind.DELETE)))
    assert read_xmi(body).model == Model(
        {
            "Hörer": ModelClass("Hörer", (Attribute("alter", "integer"),), ("Person",)),
            "Person": ModelClass("Person", subscriber=True),
            "Kurs": ModelClass("Kurs"),
        },
        (
            Association(
                "besucht", "Hörer", "Kurs", Cardinality(), Cardinality(1), ImplicitMark(End.SOURCE, limits)
            ),
        ),
    )


def test_read_xmi_of_eclipse() -> None:
    """One end belongs to a class, repeatable tagged values are elements, and defaults are omitted."""
    body = document(
        cls("A", '<ownedAttribute xmi:id="end" name="b" type="B" association="ab"/>'),
        cls(
            "B",
            '<ownedAttribute xmi:id="x" name="x"/><ownedAttribute xmi:id="code" name="code" isID="true"/>',
        ),
        '<packagedElement xmi:type="uml:Association" xmi:id="ab" memberEnd="end own">'
        '<ownedEnd xmi:id="own" type="A"><lowerValue xmi:type="uml:LiteralInteger"/>'
        '<upperValue xmi:type="uml:LiteralUnlimitedNatural" value="*"/></ownedEnd></packagedElement>',
        applied='<t:propagates base_Association="ab" towards="A"><kinds>update</kinds><kinds>link</kinds>'
        "<attributes>x</attributes></t:propagates>",
    )
    mapped = read_xmi(body)
    limits = MarkLimits(frozenset(("x",)), frozenset((ChangeKind.UPDATE, ChangeKind.LINK)))
    propagates = PropagatesMark(End.SOURCE, limits)
    expected = Association("b", "A", "B", Cardinality(), Cardinality(1, 1), propagates=propagates)
    assert mapped.model.associations == (expected,)
    assert mapped.tables["B"].key == "code" and mapped.model.classes["B"].attributes == (Attribute("x"),)
    assert mapped.link(expected) == ForeignKey("a", "b_id", End.SOURCE)


UNIVERSITY = Model(
    {
        "Student": ModelClass("Student", (Attribute("name", "string"),), subscriber=True),
        "Course": ModelClass("Course"),
    },
    (
        Association(
            "attends",
            "Student",
            "Course",
            Cardinality(),
            Cardinality(1),
            ImplicitMark(End.SOURCE, MarkLimits(None, frozenset((ChangeKind.UPDATE, ChangeKind.LINK)))),
        ),
    ),
)


def test_read_xmi_of_staruml() -> None:
    """Stereotypes are words in an extension, with tags next to them.

    An association is nested in a class, and its lower bound may be `*`.
    """
    body = b"""<?xml version="1.0" encoding="UTF-8"?>
<xmi:XMI xmi:version="2.1" xmlns:uml="http://schema.omg.org/spec/UML/2.0" xmlns:xmi="http://schema.omg.org/spec/XMI/2.1">
  <xmi:Documentation exporter="StarUML" exporterVersion="2.0"/>
  <uml:Model xmi:id="AAAAAAGN=" xmi:type="uml:Model" name="RootModel">
    <packagedElement xmi:id="AAAAAAFF+qBWK6M3Z8Y=" name="Model" visibility="public" xmi:type="uml:Model">
      <packagedElement xmi:id="s=" name="Student" visibility="public" isAbstract="false" xmi:type="uml:Class">
        <xmi:Extension extender="StarUML"><stereotype value="subscriber"/></xmi:Extension>
        <ownedMember xmi:id="a=" name="attends" visibility="public" xmi:type="uml:Association" isDerived="false">
          <xmi:Extension extender="StarUML">
            <tag kinds="update, link"/>
          </xmi:Extension>
          <ownedEnd xmi:id="e1=" visibility="public" type="s=" aggregation="none" xmi:type="uml:Property">
            <lowerValue xmi:id="l1=" xmi:type="uml:LiteralUnlimitedNatural" value="*"/>
            <upperValue xmi:id="u1=" xmi:type="uml:LiteralUnlimitedNatural" value="*"/>
          </ownedEnd>
          <ownedEnd xmi:id="e2=" visibility="public" type="c=" aggregation="none" xmi:type="uml:Property">
            <lowerValue xmi:id="l2=" xmi:type="uml:LiteralInteger" value="1"/>
            <upperValue xmi:id="u2=" xmi:type="uml:LiteralUnlimitedNatural" value="*"/>
          </ownedEnd>
          <memberEnd xmi:idref="e1="/>
          <memberEnd xmi:idref="e2="/>
        </ownedMember>
        <ownedAttribute xmi:id="n=" name="name" type="String_id" isStatic="false" isID="false" xmi:type="uml:Property"/>
      </packagedElement>
      <packagedElement xmi:id="c=" name="Course" visibility="public" xmi:type="uml:Class"/>
    </packagedElement>
    <packagedElement xmi:id="String_id" name="String" xmi:type="uml:DataType"/>
  </uml:Model>
</xmi:XMI>"""
    marked = body.replace(b"<tag kinds", b'<stereotype value="implicit"/><tag kinds')
    assert read_xmi(marked).model == UNIVERSITY
    message = read_error(body.replace(b"<tag kinds", b'<stereotype value="implict"/><tag kinds'))
    assert "(line 10); received implict" in message and "did you mean 'implicit'?" in message


def test_read_xmi_of_visual_paradigm() -> None:
    """An extension refers to the stereotype by the id of a member of the model."""
    body = b"""<?xml version="1.0" encoding="UTF-8"?>
<uml:Model xmi:version="2.1" xmlns:uml="http://schema.omg.org/spec/UML/2.0" xmlns:xmi="http://schema.omg.org/spec/XMI/2.1"
    name="university" xmi:id="m">
  <xmi:Documentation exporter="Visual Paradigm" exporterVersion="7.0.2"/>
  <ownedMember name="String" xmi:id="string_id" xmi:type="uml:DataType"/>
  <ownedMember name="subscriber" xmi:id="Class_subscriber_id" xmi:type="uml:Stereotype">
    <xmi:Extension extender="Visual Paradigm"><baseType value="Class"/></xmi:Extension>
  </ownedMember>
  <ownedMember name="implicit" xmi:id="Association_implicit_id" xmi:type="uml:Stereotype"/>
  <ownedMember isAbstract="false" name="Student" visibility="public" xmi:id="s" xmi:type="uml:Class">
    <xmi:Extension extender="Visual Paradigm">
      <isRoot xmi:value="false"/><modelType value="Class"/><appliedStereotype xmi:value="Class_subscriber_id"/>
    </xmi:Extension>
    <ownedAttribute aggregation="none" isID="false" name="name" type="string_id" xmi:id="n" xmi:type="uml:Property">
      <xmi:Extension extender="Visual Paradigm"><attribute/><isVisble xmi:value="true"/></xmi:Extension>
    </ownedAttribute>
  </ownedMember>
  <ownedMember name="Course" xmi:id="c" xmi:type="uml:Class"/>
  <ownedMember isDerived="false" name="attends" xmi:id="a" xmi:type="uml:Association">
    <memberEnd xmi:idref="e1"/>
    <ownedEnd association="a" isNavigable="true" type="s" xmi:id="e1" xmi:type="uml:Property">
      <xmi:Extension extender="Visual Paradigm"><associationEnd/></xmi:Extension>
      <lowerValue value="0" xmi:id="l1" xmi:type="uml:LiteralString"/>
      <upperValue value="*" xmi:id="u1" xmi:type="uml:LiteralString"/>
    </ownedEnd>
    <memberEnd xmi:idref="e2"/>
    <ownedEnd association="a" isNavigable="true" type="c" xmi:id="e2" xmi:type="uml:Property">
      <lowerValue value="1" xmi:id="l2" xmi:type="uml:LiteralString"/>
      <upperValue value="*" xmi:id="u2" xmi:type="uml:LiteralString"/>
    </ownedEnd>
    <xmi:Extension extender="Visual Paradigm">
      <qualityScore value="-1"/><appliedStereotype xmi:value="Association_implicit_id"/>
    </xmi:Extension>
  </ownedMember>
</uml:Model>"""
    [attends] = read_xmi(body).model.associations
    assert attends.implicit == ImplicitMark(
        End.SOURCE, MarkLimits()
    ) and attends.target_cardinality == Cardinality(1)
    assert read_xmi(body).model.classes == UNIVERSITY.classes


def test_read_xmi_of_magicdraw() -> None:
    """Types are ids of a library, explained by extensions; a lower bound of 0 is omitted."""
    body = b"""<?xml version='1.0' encoding='UTF-8'?>
<xmi:XMI xmlns:uml='http://www.omg.org/spec/UML/20131001' xmlns:xmi='http://www.omg.org/spec/XMI/20131001'
    xmlns:Tidings='http://www.magicdraw.com/schemas/Tidings.xmi'
    xmlns:MagicDraw_Profile='http://www.omg.org/spec/UML/20131001/MagicDrawProfile'>
  <xmi:Documentation>
    <xmi:exporter>MagicDraw UML</xmi:exporter><xmi:exporterVersion>18.5</xmi:exporterVersion>
  </xmi:Documentation>
  <xmi:Extension extender='MagicDraw UML 18.5'><plugin pluginName='SysML' pluginVersion='18.5'/></xmi:Extension>
  <uml:Model xmi:type='uml:Model' xmi:id='eee_1045467100313_135436_1' name='Model'>
    <ownedComment xmi:type='uml:Comment' xmi:id='_c' body='Author: ana'>
      <annotatedElement xmi:idref='eee_1045467100313_135436_1'/>
    </ownedComment>
    <packagedElement xmi:type='uml:Class' xmi:id='_s' name='Student'>
      <ownedAttribute xmi:type='uml:Property' xmi:id='_n' name='name' visibility='private'>
        <type href='UML_Standard_Profile.mdzip#_16_5_1_12c903cb_1245415335546_479030_4092'>
          <xmi:Extension extender='MagicDraw UML 18.5'>
            <referenceExtension referentPath='UML Standard Profile::UML2 Metamodel::PrimitiveTypes::String'
                referentType='PrimitiveType'/>
          </xmi:Extension>
        </type>
      </ownedAttribute>
    </packagedElement>
    <packagedElement xmi:type='uml:Class' xmi:id='_k' name='Course'/>
    <packagedElement xmi:type='uml:Association' xmi:id='_a' name='attends'>
      <memberEnd xmi:idref='_e1'/>
      <memberEnd xmi:idref='_e2'/>
      <ownedEnd xmi:type='uml:Property' xmi:id='_e1' visibility='private' type='_s' association='_a'>
        <lowerValue xmi:type='uml:LiteralInteger' xmi:id='_l1'/>
        <upperValue xmi:type='uml:LiteralUnlimitedNatural' xmi:id='_u1' value='*'/>
      </ownedEnd>
      <ownedEnd xmi:type='uml:Property' xmi:id='_e2' visibility='private' type='_k' association='_a'>
        <xmi:Extension extender='MagicDraw UML 18.5'>
          <modelExtension><lowerValue xmi:type='uml:LiteralInteger' xmi:id='_l2' value='1'/></modelExtension>
        </xmi:Extension>
        <upperValue xmi:type='uml:LiteralUnlimitedNatural' xmi:id='_u2' value='*'/>
      </ownedEnd>
    </packagedElement>
  </uml:Model>
  <Tidings:subscriber xmi:id='_t1' base_Class='_s'/>
  <Tidings:implicit xmi:id='_t2' base_Association='_a'><kinds>update</kinds><kinds>link</kinds></Tidings:implicit>
  <MagicDraw_Profile:auxiliaryResource xmi:id='_t3' base_Package='_x'/>
</xmi:XMI>"""
    assert read_xmi(body).model == UNIVERSITY


def test_read_xmi_association_is_directed_to_navigable_or_last_end() -> None:
    plain = document(cls("A"), cls("B"), association("ab", "A", "B"))
    assert [(each.source, each.target) for each in read_xmi(plain).model.associations] == [("A", "B")]
    navigable = plain.replace(b'memberEnd="', b'navigableOwnedEnd="ab.0" memberEnd="')
    assert [(each.source, each.target) for each in read_xmi(navigable).model.associations] == [("B", "A")]
    navigable = plain.replace(b'xmi:id="ab.0"', b'xmi:id="ab.0" isNavigable="true"')
    assert [(each.source, each.target) for each in read_xmi(navigable).model.associations] == [("B", "A")]


def test_read_xmi_of_papyrus_has_target_first() -> None:
    note = b'<eAnnotations source="org.eclipse.papyrus"/></packagedElement></uml:Model>'
    body = document(cls("B"), cls("A"), association("ab", "B", "A")).replace(
        b"</packagedElement>\n</uml:Model>", note
    )
    assert [(each.source, each.target) for each in read_xmi(body).model.associations] == [("A", "B")]


def test_read_xmi_separate_generalization_sets_parent() -> None:
    generalization = '<packagedElement xmi:type="uml:Generalization" xmi:id="g" specific="B" general="A"/>'
    assert read_xmi(document(cls("A"), cls("B"), generalization)).model.classes["B"].parents == ("A",)


def test_read_xmi_types_are_resolved_by_name() -> None:
    types = ('type="colour"', 'type="missing"', "")
    attributes = "".join(
        f'<ownedAttribute xmi:id="a{at}" name="a{at}" {type}/>' for at, type in enumerate(types)
    )
    address = "http://www.omg.org/spec/UML/20131001/PrimitiveTypes.xmi#Integer"
    library = f'<ownedAttribute xmi:id="d" name="d"><type href="{address}"/></ownedAttribute>'
    enumeration = '<packagedElement xmi:type="uml:Enumeration" xmi:id="colour" name="Colour"/>'
    attributes_found = read_xmi(document(cls("A", attributes + library), enumeration)).model.attributes_of(
        "A"
    )
    assert [each.type for each in attributes_found] == ["Colour", "missing", None, "integer"]


def test_read_xmi_stereotypes_set_tables_and_columns() -> None:
    body = document(
        cls("A", '<ownedAttribute xmi:id="x" name="x"/>'),
        association("aa", "A", "A"),
        applied='<t:stored base_Class="A" table="as" key="nr"/><t:stored base_Property="x" column="y"/>'
        '<t:stored base_Association="aa" table="links" source_column="from_a"/>',
    )
    mapped = read_xmi(body)
    assert (mapped.tables["A"].name, mapped.tables["A"].key, mapped.tables["A"].columns) == (
        "as",
        "nr",
        {"x": "y"},
    )
    assert mapped.link(mapped.model.associations[0]) == LinkTable("links", "from_a", "target_id")


def test_profile_has_all_marks_and_no_classes() -> None:
    assert "the model has no classes" in read_error(PROFILE.read_bytes())
    for word in (
        "subscriber",
        "implicit",
        "propagates",
        "stored",
        "told",
        "towards",
        "kinds",
        "attributes",
        "label",
    ):
        assert f'name="{word}"' in PROFILE.read_text()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            document(
                cls("A"), cls("B"), association("ab", "A", "B"), applied='<t:implicit base_Association="ab"/>'
            ),
            "the model: ab is implicit, and neither A nor B is a subscriber (line 7); "
            "accepted: an end whose class or ancestor class is a subscriber; mark A or B as subscriber",
        ),
        (
            document(cls("A"), association("aa", "A", "Z")),
            "the model: no such class (line 4); received Z; accepted: A",
        ),
        (
            document(cls("A"), '<packagedElement xmi:type="uml:AssociationClass" xmi:id="c" name="C"/>'),
            "the model: association classes are not supported (line 4); received C; "
            "model a class between the two, with an association to each",
        ),
        (
            document(cls("A"), '<packagedElement xmi:type="uml:Association" xmi:id="c" memberEnd="x"/>'),
            "the model: 2 problems\n"
            "  an end of the association does not exist (line 4); received x\n"
            "  an association has two ends (line 4); received 0 ends; accepted: 2; "
            "model an association between three classes as a class with three associations",
        ),
        (
            document(cls("A"), association("aa", "A", "A").replace('value="*"', 'value="x"', 1)),
            "the model: not a cardinality (line 4); received 0..x; accepted: such as 1, 0..1, *, 1..*, 2..5",
        ),
        (
            document(cls("A"), association("aa", "A", "A").replace('type="A"', "", 1)),
            "the model: this end has no class (line 4)",
        ),
        (
            document(cls("A"), applied='<t:subscribe base_Class="A"/><t:other base_Class="A"/>'),
            "the model: 2 problems\n"
            f"  unknown mark (line 5); received subscribe; accepted: {MARKS}; did you mean 'subscriber'?\n"
            f"  unknown mark (line 5); received other; accepted: {MARKS}",
        ),
        (
            document(cls("A"), applied='<t:subscriber base_Class="B"/>'),
            "the model: subscriber is applied to an element that does not exist (line 5); received B",
        ),
        (
            document(cls("A"), applied='<t:propagates base_Class="A"/>'),
            "the model: not a mark of a class (line 5); received propagates; accepted: stored, subscriber",
        ),
        (
            document(cls("A"), cls("A").replace('id="A"', 'id="A2"')),
            "the model: duplicate class name (line 4); received A; names of classes are unique in a model, "
            "whatever their packages",
        ),
        (
            document('<packagedElement xmi:type="uml:Class" xmi:id="a"/>'),
            "the model: a class needs a name (line 3); accepted: a text without control characters",
        ),
        (
            b'<XMI xmi.version="1.2"><XMI.content/></XMI>',
            "the model: not XMI 2.x (line 1); received XMI 1.2; accepted: 2.0 or newer; export it as XMI 2.1",
        ),
    ],
)
def test_read_xmi_invalid_document_is_rejected(body: bytes, expected: str) -> None:
    assert read_error(body) == expected


def test_read_xmi_hostile_document_is_rejected() -> None:
    """No DTD, no entities, no deep nesting: as for all publications."""
    bomb = b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]><x>&a;</x>'
    with pytest.raises(DecodeProblem, match="document type declaration"):
        read_xmi(bomb)
    with pytest.raises(DecodeProblem, match="nested too deeply"):
        read_xmi(b"<a>" * 300 + b"</a>" * 300)
    with pytest.raises(DecodeProblem, match="not well-formed"):
        read_xmi(b"<a>")
    with pytest.raises(ModelError, match="no class"):
        read_xmi(b"<html/>")


def test_read_xmi_double_number_of_generalizations_takes_double_work() -> None:
    short, long = (
        count_executed_lines(lambda: read_xmi(below_one(count)), "tidings.objects.readers.xmi_reader")  # noqa: B023
        for count in (100, 200)
    )
    assert long < 2.1 * short


def below_one(count: int) -> bytes:
    """Build classes below another one, each by a separate generalization."""
    rows = (
        f'<packagedElement xmi:type="uml:Generalization" xmi:id="g{n}" specific="C{n}" general="C0"/>'
        for n in range(1, count)
    )
    return document(*(cls(f"C{n}") for n in range(count)), *rows)

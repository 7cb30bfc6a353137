"""The worked example of the paper, table by table (figures 3.2 to 3.14 and 4.1).

The figures have the layout of the paper. `PaperIds` translates ids of Tidings to those of the paper. Where the printed
text contradicts itself or XPath, a comment gives the printed value and the reason for the difference.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidings.documents.model import NodeKind, show_steps, steps_of
from tidings.documents.reference_matcher import matches
from tidings.documents.xml_decoder import decode
from tidings.documents.xpath import xpath_parser
from tidings.relational.branch_check import EVERYTHING, BpPosition, BranchNode, Relation, brpred, converted
from tidings.relational.branches import alternatives_of, predicate_sets_of
from tidings.relational.engine import check, matching, predicates_of, probes_of_batch
from tidings.relational.plans import candidates, checkpointed_tables, sax_parse_result
from tidings.relational.reader import SPARK_SCHEMA, WantedPaths, rows_of, stage
from tidings.relational.shred import Rows
from tidings.relational.table_store import TableStore
from tidings.relational.tables import ROOT, Layout, Plan, brinfo_id, chain_id, path_id, sub_id

SUBSCRIPTION = '/a//b[.//c/d/text()="v1" AND p//q/text()="v2"]/x[@y="v3"]//z/text() = "v4"'
"""Figure 3.2, subscription 5. The paper writes `[//c/d...` and `[/p//q...` for paths below b; in XPath 1.0 these
start at the document, and paths below b are `.//c/d` and `p//q`."""

MESSAGE = b"""<a><b><c><d>v1</d></c><p><p2><q>v2</q></p2></p><x y="v3"><z>v4</z><z>v5</z></x></b>\
<b><b><x y="v3"/></b></b></a>"""
"""Figure 3.5, message 12. Its last lines are missing in print; figure 3.6 has them: b (16), b (17), x (18), @y (19)."""

FIGURE_3_3 = """
/a//b{bp#1}//c/d/text() = "v1"
/a//b{bp#1}/p//q/text() = "v2"
/a//b{bp#1}/x{bp#2}/@y = "v3"
/a//b{bp#1}/x{bp#2}//z/text() = "v4"
"""

QUERY_LINEAR_PATH = """
LinearPath         Id   Prefix  Postfix     Middle
/a//b//c/d/text()  100  /a      text()/d/c  b
/a//b/p//q/text()  101  /a      text()/q    b/p
/a//b/x/@y         102  /a      @y/x/b      null
/a//b/x//z/text()  103  /a      text()/z    b/x
"""

QUERY_PREDICATE = """
pre_id  LinearPath_Id  Op  Value  Chain_id  final
0       100            =   v1     501       F
501     101            =   v2     502       F
502     102            =   v3     503       F
503     103            =   v4     5         T
"""

LINEARPATH_BRINFO = """
LinearPath         Linear_Path_Id  BrInfo         BrInfo_id
/a//b//c/d/text()  100             bp#1=2         50
/a//b/p//q/text()  101             bp#1=2         51
/a//b/x/@y         102             bp#1=2&bp#2=3  52
/a//b/x//z/text()  103             bp#1=2&bp#2=3  53
"""

QUERY_BRANCHPOINT = """
Sub_id  BranchPoint_Info
5       50&51&52&53
"""

# The value of the last row is printed "v4". But figure 3.12 has this node among those that satisfy @y = "v3".
FIGURE_3_6 = """
TagPath             IdPath         Value
/a/b/c/d/text()     1.2.3.4.5      v1
/a/b/p/p2/q/text()  1.2.6.7.8.9    v2
/a/b/x/@y           1.2.10.11      v3
/a/b/x/z/text()     1.2.10.12.13   v4
/a/b/x/z/text()     1.2.10.14.15   v5
/a/b/b/x/@y         1.16.17.18.19  v3
"""

# The inverse of 312 is printed text()/p2/p/b/a, without its q.
TAGPATH_MAP = """
TagPath             Inv_Tagpath         TagPath_Id
/a/b/c/d/text()     text()/d/c/b/a      311
/a/b/p/p2/q/text()  text()/q/p2/p/b/a   312
/a/b/x/@y           @y/x/b/a            313
/a/b/x/z/text()     text()/z/x/b/a      314
/a/b/b/x/@y         @y/x/b/b/a          315
"""

SAX_PARSE_RESULT = """
Event_id  Tagpath_Id  IdPath         Value
12        311         1.2.3.4.5      v1
12        312         1.2.6.7.8.9    v2
12        313         1.2.10.11      v3
12        314         1.2.10.12.13   v4
12        314         1.2.10.14.15   v5
12        315         1.16.17.18.19  v3
"""

PATH_MATCH = """
TagPath_Id  LinearPath_Id
311         100
312         101
313         102
314         103
315         102
"""

# The last row is printed {bp#1,bp#2},{2,4},{3,4}, and according to the text bp#1 may be either b of /a/b/b/x/@y. But
# the linear path is /a//b/x/@y, and x is no child of the first b: XPath allows {3,4} only. `test_brpred_printed...`
# below has a document that {2,4} would match wrongly.
TAGPATH_BRINFO = """
TagPath_Id  BrInfo_Id  BP_Position
311         50         {bp#1},{2}
312         51         {bp#1},{2}
313         52         {bp#1,bp#2},{2,3}
314         53         {bp#1,bp#2},{2,3}
315         52         {bp#1,bp#2},{3,4}
"""

FIGURE_3_12 = """
Event_Id  Sub_Id  (TagPath_id,idpath)
12        5       (311,1.2.3.4.5),(312,1.2.6.7.8.9),(313,1.2.10.11),(314,1.2.10.12.13)
12        5       (311,1.2.3.4.5),(312,1.2.6.7.8.9),(315,1.16.17.18.19),(314,1.2.10.12.13)
"""

FIGURE_3_13 = """
Event_Id  Sub_Id  (BP_Position:idpath)
12  5  {bp#1},{2}:1.2.3.4.5 {bp#1},{2}:1.2.6.7.8.9 {bp#1,bp#2},{2,3}:1.2.10.11 {bp#1,bp#2},{2,3}:1.2.10.12.13
12  5  {bp#1},{2}:1.2.3.4.5 {bp#1},{2}:1.2.6.7.8.9 {bp#1,bp#2},{3,4}:1.16.17.18.19 {bp#1,bp#2},{2,3}:1.2.10.12.13
"""

PREDICATE_UNROLL = """
SubId  Path1  Op1  Value1  Path2  Op2  Value2  Path3  Op3  Value3  Path4  Op4  Value4  Final
5      100    =    v1      101    =    v2      102    =    v3      103    =    v4      T
"""


class PaperIds(dict):
    """Ids of the paper by ids of Tidings."""

    LINEAR = ("/a//b//c/d/text()", "/a//b/p//q/text()", "/a//b/x/@y", "/a//b/x//z/text()")
    TAGS = ("/a/b/c/d/text()", "/a/b/p/p2/q/text()", "/a/b/x/@y", "/a/b/x/z/text()", "/a/b/b/x/@y")
    INFOS = ("bp#1=2", "bp#1=2", "bp#1=2&bp#2=3", "bp#1=2&bp#2=3")

    def __init__(self) -> None:
        super().__init__({ROOT: 0, sub_id("5", 1, 0): 5, None: "null", True: "T", False: "F"})
        self.update({path_id(path): 100 + n for n, path in enumerate(self.LINEAR)})
        self.update({path_id(path): 311 + n for n, path in enumerate(self.TAGS)})
        infos = zip(self.LINEAR, self.INFOS, strict=True)
        self.update({brinfo_id(path, info): 50 + n for n, (path, info) in enumerate(infos)})
        chain = ROOT
        for n, path in enumerate(self.LINEAR[:3]):
            chain = chain_id(chain, path_id(path), "=", f"v{n + 1}", False)
            self[chain] = 501 + n

    def __missing__(self, known: object) -> object:
        return known


PAPER_IDS = PaperIds()


def format_rows(rows, *columns):
    """Format rows of Tidings as lines of a figure."""
    return [" ".join(str(PAPER_IDS[row[name]]) for name in columns) for row in rows]


def figure_lines(text):
    """Return the lines of a figure without its heading."""
    return [" ".join(line.split()) for line in text.strip().splitlines()[1:]]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with the subscription of the example and the tag paths of its message."""
    store = TableStore.create(tmp_path_factory.mktemp("example") / "tables", Layout(Plan.SHARE))
    store.add(None, pa.table({"id": ["5"], "text": [SUBSCRIPTION]}))
    store.learn(row.tagpath for row in parse_message())
    return store


def parse_message():
    return list(rows_of("12", decode(MESSAGE), WantedPaths(PaperIds.LINEAR)))


def read_rows(store, name):
    return store.version.rows(name).to_pylist()


def test_alternatives_of_figure_3_3():
    (alternative,) = alternatives_of(SUBSCRIPTION)
    assert [_mark_points(branch) for branch in alternative.branches] == FIGURE_3_3.strip().split("\n")
    assert alternative.exact


def _mark_points(branch):
    numbers = {step: number for number, step in branch.points}
    steps = [show_steps([step]) for step in steps_of(branch.path)]
    marked = [f"{step}{{bp#{numbers[n]}}}" if n in numbers else step for n, step in enumerate(steps, start=1)]
    return f'{"".join(marked)} {branch.operator} "{branch.literal}"'


def test_figure_3_4_query_linear_path(store):
    rows = format_rows(
        read_rows(store, "query_linear_path"), "linearpath", "id", "prefix", "postfix", "middle"
    )
    assert rows == figure_lines(QUERY_LINEAR_PATH)


def test_figure_3_4_query_predicate(store):
    rows = read_rows(store, "query_predicate")
    columns = ("pre_id", "linearpath_id", "op", "value", "chain_id", "final")
    lines = sorted(format_rows(rows, *columns), key=lambda line: line.split()[1])
    assert lines == figure_lines(QUERY_PREDICATE), "in the order of the figure; files have that of look-ups"


def test_figure_3_4_linearpath_brinfo(store):
    rows = format_rows(
        read_rows(store, "linearpath_brinfo"), "linearpath", "linearpath_id", "brinfo", "brinfo_id"
    )
    assert rows == figure_lines(LINEARPATH_BRINFO)


def test_figure_3_4_query_branchpoint(store):
    (row,) = read_rows(store, "query_branchpoint")
    infos = "&".join(str(PAPER_IDS[int(info)]) for info in row["branchpoint_info"].split("&"))
    assert [f"{PAPER_IDS[row['sub_id']]} {infos}"] == figure_lines(QUERY_BRANCHPOINT)


def test_decode_figure_3_5_message_has_numbered_nodes():
    """Nodes are numbered in document order: an element, its attributes, its content."""
    kinds = {NodeKind.ELEMENT: "{}", NodeKind.ATTRIBUTE: "@{}", NodeKind.TEXT: "{}"}
    numbered, pending = [], [decode(MESSAGE)]
    while pending:
        node = pending.pop()
        numbered.append(f"{kinds[node.kind].format(node.name or node.value)} ({len(numbered) + 1})")
        pending.extend(reversed(node.children))
    assert " ".join(numbered) == (
        "a (1) b (2) c (3) d (4) v1 (5) p (6) p2 (7) q (8) v2 (9) x (10) @y (11) z (12) v4 (13) z (14) v5 (15) "
        "b (16) b (17) x (18) @y (19)"
    )


def test_rows_of_figure_3_6_message():
    assert [f"{row.tagpath} {row.idpath} {row.value}" for row in parse_message()] == figure_lines(FIGURE_3_6)


def test_figure_3_7_tagpath_map(store):
    assert format_rows(
        read_rows(store, "tagpath_map"), "tagpath", "inv_tagpath", "tagpath_id"
    ) == figure_lines(TAGPATH_MAP)


def test_figure_3_8_path_match(store):
    assert format_rows(read_rows(store, "path_match"), "tagpath_id", "linearpath_id") == figure_lines(
        PATH_MATCH
    )


def test_figure_3_11_tagpath_brinfo(store):
    rows = format_rows(read_rows(store, "tagpath_brinfo"), "tagpath_id", "brinfo_id", "bp_position")
    assert rows == figure_lines(TAGPATH_BRINFO)


def test_relations_of_figures_3_13_and_3_14_join_for_first_tuple_only():
    """The relations of the first tuple join to (2, 10), those of the second to no row."""
    lines = [line.split()[2:] for line in figure_lines(FIGURE_3_13)]
    pairs = [[pair.split(":") for pair in line] for line in lines]
    first, second = ([BpPosition.read(text).relation(ids) for text, ids in line] for line in pairs)
    assert first == [
        Relation((1,), frozenset({("2",)})),
        Relation((1,), frozenset({("2",)})),
        Relation((1, 2), frozenset({("2", "10")})),
        Relation((1, 2), frozenset({("2", "10")})),
    ]
    assert second[2] == Relation((1, 2), frozenset({("17", "18")}))
    assert join_all(first) == Relation((1, 2), frozenset({("2", "10")}))
    assert join_all(second).rows == frozenset()


def join_all(relations):
    result = EVERYTHING
    for relation in relations:
        result = result.join(relation)
    return result


def test_bp_position_printed_in_figure_3_11_has_two_tuples():
    """The text has these tuples for the pair printed in figure 3.11: (16, 18) and (17, 18)."""
    relation = BpPosition.read("{bp#1,bp#2},{2,4},{3,4}").relation("1.16.17.18.19")
    assert relation.rows == {("16", "18"), ("17", "18")}


def test_brpred_printed_position_would_match_wrong_document():
    """With {2,4} for /a/b/b/x/@y the first b would count as the b of /a//b/x, and this document would match."""
    text, document = "/a//b[c]/x/@y = 'v3'", b"<a><b><c/><b><x y='v3'/></b></b></a>"
    assert not matches(xpath_parser.parse(text), decode(document))
    nodes = [[BranchNode(1, "1.2.3")], [BranchNode(2, "1.2.4.5.6")]]
    printed = {(1, 50): BpPosition.read("{bp#1},{2}"), (2, 51): BpPosition.read("{bp#1},{2},{3}")}
    corrected = printed | {(2, 51): BpPosition.read("{bp#1},{3}")}
    assert brpred([50, 51], nodes, printed)
    assert not brpred([50, 51], nodes, corrected)


def test_figure_4_1_predicate_unroll():
    rows = Rows(Layout(Plan.UNROLL, unroll=4), 1)
    rows.add("5", SUBSCRIPTION, predicate_sets_of(SUBSCRIPTION))
    (row,) = rows.tables()["predicate_unroll"].to_pylist()
    columns = ["sub_id", *(f"{name}{n}" for n in range(1, 5) for name in ("path", "op", "value")), "final"]
    assert format_rows([row], *columns) == figure_lines(PREDICATE_UNROLL)
    assert "query_predicate" not in rows.rows


def _message_frame(session):
    return session.createDataFrame([("12", bytearray(MESSAGE))], "publication string, body binary")


@pytest.mark.spark
def test_figure_3_7_sax_parse_result(session, store):
    rows = _message_frame(session).mapInArrow(stage(store.version), SPARK_SCHEMA)
    result = sax_parse_result(rows, store.table(session, "tagpath_map"))
    rows_of_result = [row.asDict() for row in result.collect()]
    assert format_rows(rows_of_result, "event_id", "tagpath_id", "idpath", "value") == figure_lines(
        SAX_PARSE_RESULT
    )


@pytest.mark.spark
def test_candidates_and_check_of_figures_3_12_to_3_14(session, store):
    """A candidate has all nodes of each branch, so both tuples of figure 3.12 belong to one candidate."""
    with checkpointed_tables() as checkpoint:
        rows = checkpoint(_message_frame(session).mapInArrow(stage(store.version), SPARK_SCHEMA))
        probes = probes_of_batch(session, store, rows, checkpoint)
        found_candidates = candidates(predicates_of(session, store), probes, checkpoint)
        (candidate,) = found_candidates.collect()
        checked = check(session, store, found_candidates, checkpoint).collect()
    branches = [sorted(branch, key=lambda node: node.idpath) for branch in candidate.branches]
    assert [len(branch) for branch in branches] == [1, 1, 2, 1]
    tuples = [
        [branches[0][0], branches[1][0], node_of_third, branches[3][0]] for node_of_third in branches[2]
    ]
    event, sub = candidate.event_id, PAPER_IDS[bytes(candidate.sub_id)]
    shown = [",".join(f"({PAPER_IDS[node.tagpath_id]},{node.idpath})" for node in each) for each in tuples]
    assert sorted(f"{event} {sub} {nodes}" for nodes in shown) == sorted(figure_lines(FIGURE_3_12))

    infos = [brinfo_id(path, info) for path, info in zip(PaperIds.LINEAR, PaperIds.INFOS, strict=True)]
    positions = {
        (row["tagpath_id"], row["brinfo_id"]): BpPosition.read(row["bp_position"])
        for row in read_rows(store, "tagpath_brinfo")
    }
    shown = [
        " ".join(
            f"{positions[node.tagpath_id, info].show()}:{node.idpath}"
            for node, info in zip(each, infos, strict=True)
        )
        for each in tuples
    ]
    assert sorted(f"{event} {sub} {pairs}" for pairs in shown) == sorted(figure_lines(FIGURE_3_13))

    nodes = [[BranchNode(node.tagpath_id, node.idpath) for node in branch] for branch in branches]
    assert join_all(converted(infos, nodes, positions)).rows == {("2", "10")}
    assert [(row.event_id, row.subscription) for row in checked] == [("12", "5")]


@pytest.mark.spark
def test_matching_example_gives_one_pair(session, store):
    with matching(session, store, _message_frame(session)) as outcome:
        assert [tuple(row) for row in outcome.pairs.collect()] == [("12", "5", None)]

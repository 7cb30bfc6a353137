import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;
import software.amazon.event.ruler.GenericMachine;
import software.amazon.event.ruler.Patterns;
import software.amazon.event.ruler.Range;

/**
 * event-ruler processes an event's fields in the order of their names, so the most selective one has the first name.
 *
 * <p>Rules are added as patterns, numeric ranges for intervals and exact matches for equalities. Events are
 * JSON or sorted lists of names and values, depending on the first argument.
 */
final class EventRuler extends Driver {
    private final GenericMachine<Integer> machine = new GenericMachine<>();
    private final boolean asJson;
    private final List<List<String>> lists = new ArrayList<>();
    private final List<String> texts = new ArrayList<>();

    private EventRuler(boolean asJson) {
        this.asJson = asJson;
    }

    public static void main(String[] arguments) throws Exception {
        new EventRuler(arguments[0].equals("json")).serve();
    }

    @Override
    protected void build() {
        for (int clause = 0; clause < clauses(); clause++) {
            Map<String, List<Patterns>> rule = new HashMap<>();
            for (int t = (int) starts[clause]; t < starts[clause + 1]; t++) {
                rule.put(fieldName(attribute[t]), List.of(pattern(attribute[t], low[t], high[t])));
            }
            machine.addPatternRule((int) owner[clause], rule);
        }
    }

    private Patterns pattern(long attribute, long low, long high) {
        if (isText(attribute)) return Patterns.exactMatch(value(attribute, low));
        if (low == high) return Patterns.numericEquals(Long.toString(low));
        if (low == -UNBOUNDED) return Range.lessThanOrEqualTo(Long.toString(high));
        if (high == UNBOUNDED) return Range.greaterThanOrEqualTo(Long.toString(low));
        return Range.between(Long.toString(low), false, Long.toString(high), false);
    }

    private String value(long attribute, long value) {
        return isText(attribute) ? "\"v" + value + "\"" : Long.toString(value);
    }

    @Override
    protected void give() {
        lists.clear();
        texts.clear();
        for (int event = 0; event < events(); event++) {
            Map<String, String> fields = fields(event);
            List<String> list = new ArrayList<>();
            StringJoiner text = new StringJoiner(",", "{", "}");
            fields.forEach((name, value) -> {
                list.add(name);
                list.add(value);
                text.add("\"" + name + "\":" + value);
            });
            lists.add(list);
            texts.add(text.toString());
        }
    }

    private Map<String, String> fields(int event) {
        Map<String, String> sorted = new TreeMap<>();
        for (int t = (int) eventStarts[event]; t < eventStarts[event + 1]; t++) {
            sorted.put(fieldName(eventAttribute[t]), value(eventAttribute[t], eventValue[t]));
        }
        return sorted;
    }

    @Override
    protected int[] match() throws Exception {
        int[] counts = new int[events()];
        for (int event = 0; event < counts.length; event++) {
            List<Integer> found =
                    asJson ? machine.rulesForJSONEvent(texts.get(event)) : machine.rulesForEvent(lists.get(event));
            counts[event] = found.size();
        }
        return counts;
    }
}

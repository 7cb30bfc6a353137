import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.lucene.analysis.core.KeywordAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.IntPoint;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.Term;
import org.apache.lucene.monitor.Monitor;
import org.apache.lucene.monitor.MonitorConfiguration;
import org.apache.lucene.monitor.MonitorQuery;
import org.apache.lucene.monitor.MultipassTermFilteredPresearcher;
import org.apache.lucene.monitor.Presearcher;
import org.apache.lucene.monitor.QueryMatch;
import org.apache.lucene.monitor.TermFilteredPresearcher;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermQuery;

/** Lucene Monitor: terms for equalities, points and range queries for intervals, one document per event. */
final class LuceneMonitor extends Driver {
    private static final int AT_ONCE = 5000;

    private final Monitor monitor;
    private final int batch;
    private Document[] documents;

    /** Set the presearcher's passes over a document's terms, and the number of documents matched together. */
    private LuceneMonitor(int passes, int batch) throws IOException {
        Presearcher presearcher =
                passes > 1 ? new MultipassTermFilteredPresearcher(passes) : new TermFilteredPresearcher();
        MonitorConfiguration configuration = new MonitorConfiguration();
        configuration.setQueryUpdateBufferSize(AT_ONCE);
        configuration.setPurgeFrequency(1, TimeUnit.DAYS); // nothing is removed here
        monitor = new Monitor(new KeywordAnalyzer(), presearcher, configuration);
        this.batch = batch;
    }

    public static void main(String[] arguments) throws Exception {
        new LuceneMonitor(Integer.parseInt(arguments[0]), Integer.parseInt(arguments[1])).serve();
    }

    @Override
    protected void build() throws IOException {
        List<MonitorQuery> some = new ArrayList<>();
        for (int clause = 0; clause < clauses(); clause = nextOwner(clause)) {
            some.add(new MonitorQuery(Long.toString(owner[clause]), any(clause, nextOwner(clause))));
            if (some.size() == AT_ONCE) {
                monitor.register(some);
                some.clear();
            }
        }
        monitor.register(some);
    }

    private Query any(int first, int end) {
        if (end - first == 1) return all(first);
        BooleanQuery.Builder either = new BooleanQuery.Builder();
        for (int clause = first; clause < end; clause++) either.add(all(clause), Occur.SHOULD);
        return either.build();
    }

    private Query all(int clause) {
        BooleanQuery.Builder both = new BooleanQuery.Builder();
        for (int t = (int) starts[clause]; t < starts[clause + 1]; t++) {
            both.add(one(attribute[t], low[t], high[t]), Occur.FILTER);
        }
        return both.build();
    }

    private Query one(long attribute, long low, long high) {
        String name = fieldName(attribute);
        if (isText(attribute)) return new TermQuery(new Term(name, "v" + low));
        return IntPoint.newRangeQuery(name, bounded(low), bounded(high));
    }

    private static int bounded(long value) {
        return (int) Math.max(Integer.MIN_VALUE, Math.min(Integer.MAX_VALUE, value));
    }

    @Override
    protected void give() {
        documents = new Document[events()];
        for (int event = 0; event < documents.length; event++) {
            documents[event] = new Document();
            for (int t = (int) eventStarts[event]; t < eventStarts[event + 1]; t++) {
                documents[event].add(field(eventAttribute[t], eventValue[t]));
            }
        }
    }

    private Field field(long attribute, long value) {
        String name = fieldName(attribute);
        if (isText(attribute)) return new StringField(name, "v" + value, Field.Store.NO);
        return new IntPoint(name, (int) value);
    }

    @Override
    protected int[] match() throws IOException {
        int[] counts = new int[documents.length];
        for (int from = 0; from < counts.length; from += batch) {
            Document[] some = Arrays.copyOfRange(documents, from, Math.min(from + batch, counts.length));
            if (batch == 1) {
                counts[from] = monitor.match(some[0], QueryMatch.SIMPLE_MATCHER).getMatchCount();
            } else {
                var found = monitor.match(some, QueryMatch.SIMPLE_MATCHER);
                for (int at = 0; at < some.length; at++) counts[from + at] = found.getMatchCount(at);
            }
        }
        return counts;
    }
}

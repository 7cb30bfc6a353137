import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;

/**
 * Base class of drivers: columns from files, one command per line from standard input, one line of JSON per answer.
 *
 * <p>Clause c belongs to subscription owner[c] and requires all its tests t = starts[c] .. starts[c + 1]: that
 * attribute[t] lies within low[t] and high[t]. An attribute with text[a] = 1 has only equality tests, so its values may
 * be strings. Attributes are numbered, and named by fieldName, with the most selective one first.
 */
abstract class Driver {
    static final long UNBOUNDED = 1L << 62;

    protected long[] text, starts, attribute, low, high, owner;
    protected long[] eventStarts, eventAttribute, eventValue;

    /** Load all subscriptions. */
    protected abstract void build() throws Exception;

    /** Convert the events into the form of the engine's API; not timed. */
    protected abstract void give() throws Exception;

    /** Count the subscriptions that each event matches. */
    protected abstract int[] match() throws Exception;

    protected int clauses() {
        return owner.length;
    }

    protected int events() {
        return eventStarts.length - 1;
    }

    protected boolean isText(long attribute) {
        return text[(int) attribute] == 1;
    }

    protected static String fieldName(long attribute) {
        return String.format(Locale.ROOT, "f%05d", attribute);
    }

    /** Return the first clause of the next subscription. */
    protected int nextOwner(int clause) {
        int next = clause + 1;
        while (next < clauses() && owner[next] == owner[clause]) next++;
        return next;
    }

    void serve() throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t");
            System.out.println(answer(words[0], words.length > 1 ? Path.of(words[1]) : null));
        }
        System.exit(0); // an engine may have threads of its own
    }

    private String answer(String command, Path folder) throws Exception {
        switch (command) {
            case "subscriptions":
                readSubscriptions(folder);
                return "{}";
            case "build":
                return timedBuild();
            case "events":
                readEvents(folder);
                give();
                return "{}";
            case "match":
                long before = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
                int[] counts = match();
                long spent = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - before;
                return String.format(Locale.ROOT, "{\"seconds\": %.9f, \"counts\": %s}", spent / 1e9, Arrays.toString(counts));
            default:
                return String.format("{\"error\": \"no command %s\"}", command);
        }
    }

    /** Building counts all threads: an engine may merge in the background. */
    private String timedBuild() throws Exception {
        OperatingSystemMXBean machine = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long bytes = usedHeap(), before = machine.getProcessCpuTime();
        build();
        double seconds = (machine.getProcessCpuTime() - before) / 1e9;
        return String.format(Locale.ROOT, "{\"seconds\": %.9f, \"bytes\": %d}", seconds, Math.max(0, usedHeap() - bytes));
    }

    private static long usedHeap() {
        System.gc();
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }

    private void readSubscriptions(Path folder) throws IOException {
        text = column(folder, "text");
        starts = column(folder, "starts");
        attribute = column(folder, "attribute");
        low = column(folder, "low");
        high = column(folder, "high");
        owner = column(folder, "owner");
    }

    private void readEvents(Path folder) throws IOException {
        eventStarts = column(folder, "event-starts");
        eventAttribute = column(folder, "event-attribute");
        eventValue = column(folder, "event-value");
    }

    private static long[] column(Path folder, String name) throws IOException {
        try (FileChannel channel = FileChannel.open(folder.resolve(name))) {
            ByteBuffer bytes = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
            long[] values = new long[(int) (channel.size() / Long.BYTES)];
            bytes.order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(values);
            return values;
        }
    }
}

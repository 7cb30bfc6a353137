import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import software.amazon.event.ruler.Ruler;

/** Answers for each pair of lines, a rule and an event, whether event-ruler matches them. */
final class Matches {
    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String rule = lines.readLine(); rule != null; rule = lines.readLine()) {
            System.out.println(Ruler.matchesRule(lines.readLine(), rule));
        }
    }
}

// A driver of quamina with the protocol of ../../java/Driver.java: columns from files, commands from standard input.
//
// Quamina has no numeric ranges. Its patterns are the clauses' equalities, and the ranges of each clause that it finds are
// checked here. Events are JSON with the attributes that are compared by equality. They are not flattened by hand, because
// the interface for that changes with every version.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"quamina.net/go/quamina"
)

const rusageThread = 1 // missing in Go's syscall package

type columns map[string][]int64

func main() {
	runtime.LockOSThread() // matching is timed by its thread
	matcher, err := quamina.New()
	must(err)
	driver := &driver{quamina: matcher, columns: columns{}}
	input, output := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := input.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		must(output.Encode(driver.answer(words)))
	}
}

type driver struct {
	quamina *quamina.Quamina
	columns columns
	events  [][]byte
}

func (d *driver) answer(words []string) map[string]any {
	switch words[0] {
	case "subscriptions":
		d.columns.read(words[1], "text", "starts", "attribute", "low", "high", "owner")
		return map[string]any{}
	case "build":
		bytes, before := heap(), seconds(syscall.RUSAGE_SELF)
		d.build()
		spent := seconds(syscall.RUSAGE_SELF) - before
		return map[string]any{"seconds": spent, "bytes": max(0, heap()-bytes)}
	case "events":
		d.columns.read(words[1], "event-starts", "event-attribute", "event-value")
		d.give()
		return map[string]any{}
	case "match":
		before := seconds(rusageThread)
		counts := d.match()
		return map[string]any{"seconds": seconds(rusageThread) - before, "counts": counts}
	}
	return map[string]any{"error": "no command " + words[0]}
}

func (d *driver) build() {
	starts, attribute, low := d.columns["starts"], d.columns["attribute"], d.columns["low"]
	for clause := range d.columns["owner"] {
		pattern := []string{}
		for t := starts[clause]; t < starts[clause+1]; t++ {
			if d.isText(attribute[t]) {
				pattern = append(pattern, fmt.Sprintf(`"f%05d":["v%d"]`, attribute[t], low[t]))
			}
		}
		must(d.quamina.AddPattern(clause, "{"+strings.Join(pattern, ",")+"}"))
	}
}

func (d *driver) give() {
	starts, attribute, value := d.columns["event-starts"], d.columns["event-attribute"], d.columns["event-value"]
	d.events = make([][]byte, len(starts)-1)
	for event := range d.events {
		fields := []string{}
		for t := starts[event]; t < starts[event+1]; t++ {
			if d.isText(attribute[t]) {
				fields = append(fields, fmt.Sprintf(`"f%05d":"v%d"`, attribute[t], value[t]))
			}
		}
		d.events[event] = []byte("{" + strings.Join(fields, ",") + "}")
	}
}

func (d *driver) match() []int {
	counts, values := make([]int, len(d.events)), make([]int64, len(d.columns["text"]))
	present := make([]int, len(values)) // 1 + the last event that had the attribute
	for event, text := range d.events {
		d.spread(event, values, present)
		clauses, err := d.quamina.MatchesForEvent(text)
		must(err)
		owners := make(map[int64]bool, len(clauses))
		for _, clause := range clauses {
			if d.within(clause.(int), event, values, present) {
				owners[d.columns["owner"][clause.(int)]] = true
			}
		}
		counts[event] = len(owners)
	}
	return counts
}

func (d *driver) spread(event int, values []int64, present []int) {
	starts := d.columns["event-starts"]
	for t := starts[event]; t < starts[event+1]; t++ {
		at := d.columns["event-attribute"][t]
		values[at], present[at] = d.columns["event-value"][t], event+1
	}
}

func (d *driver) within(clause, event int, values []int64, present []int) bool {
	starts, attribute := d.columns["starts"], d.columns["attribute"]
	for t := starts[clause]; t < starts[clause+1]; t++ {
		at := attribute[t]
		if present[at] != event+1 || values[at] < d.columns["low"][t] || values[at] > d.columns["high"][t] {
			return false
		}
	}
	return true
}

func (d *driver) isText(attribute int64) bool {
	return d.columns["text"][attribute] == 1
}

func (c columns) read(folder string, names ...string) {
	for _, name := range names {
		bytes, err := os.ReadFile(filepath.Join(folder, name))
		must(err)
		column := make([]int64, len(bytes)/8)
		for at := range column {
			column[at] = int64(binary.LittleEndian.Uint64(bytes[8*at:]))
		}
		c[name] = column
	}
}

func heap() int64 {
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}

// CPU seconds of the whole process, or of this thread.
func seconds(whose int) float64 {
	var usage syscall.Rusage
	must(syscall.Getrusage(whose, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Robfig: what the real robfig/cron v3.0.1 makes of schedules, as golden lines for the tests.
//
// It reads lines of JSON, [expression, zone, start, count], from cases.py and prints each again
// with the outcome in place of count: the seconds from the start to the first activation, from that
// to the second and so on, ended by null where there is none within five years; or "invalid", where
// ParseStandard returns an error, "panic" or, after two seconds, "hang". Start is in milliseconds
// since 1970.
//
// To make the goldens anew, with the time zones that hedgerow uses:
//
//	cd tests/schedule/robfig
//	export ZONEINFO=$(python -c 'import tzdata; print(tzdata.__path__[0] + "/zoneinfo")')
//	python cases.py dialect | go run . >../dialect.jsonl
//	python cases.py changes | go run . >../changes.jsonl
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"
	"time"

	"github.com/robfig/cron/v3"
)

const patience = 2 * time.Second

type question struct {
	expression, zone string
	start, count     int64
}

func main() {
	if os.Getenv("ZONEINFO") == "" {
		log.Fatal("ZONEINFO is not set: these would be the zones of this machine")
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	printed := json.NewEncoder(out)
	printed.SetEscapeHTML(false)
	for lines.Scan() {
		asked := read(lines.Bytes())
		line := []any{asked.expression, asked.zone, asked.start, answer(asked)}
		if err := printed.Encode(line); err != nil {
			log.Fatal(err)
		}
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}

func read(line []byte) question {
	var asked question
	fields := []any{&asked.expression, &asked.zone, &asked.start, &asked.count}
	if err := json.Unmarshal(line, &fields); err != nil {
		log.Fatalf("%s: %v", line, err)
	}
	return asked
}

// answer waits in vain where the library loops for ever; what loops ends with the program.
func answer(asked question) any {
	found := make(chan any, 1)
	go func() { found <- activations(asked) }()
	select {
	case outcome := <-found:
		return outcome
	case <-time.After(patience):
		return "hang"
	}
}

func activations(asked question) (outcome any) {
	defer func() {
		if recover() != nil {
			outcome = "panic"
		}
	}()
	zone, err := time.LoadLocation(asked.zone)
	if err != nil {
		log.Fatal(err)
	}
	schedule, err := cron.ParseStandard(asked.expression)
	if err != nil {
		return "invalid"
	}
	at := time.UnixMilli(asked.start).In(zone)
	second := at.Unix()
	deltas := []any{}
	for range asked.count {
		at = schedule.Next(at)
		if at.IsZero() {
			return append(deltas, nil)
		}
		deltas = append(deltas, at.Unix()-second)
		second = at.Unix()
	}
	return deltas
}

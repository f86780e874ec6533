// Command recorder asks a real kube-scheduler, built into it, what it decides for scenarios.
//
// It reads JSON lines of id, family and scenario from standard input and writes the same lines
// with expected to standard output. See README.md beside it, and ../__main__.py, which builds it
// for one version of Kubernetes and runs it.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"

	"k8s.io/klog/v2"
)

const longestLineBytes = 256 << 20

// line is one case: what it is, the question, and after recording the answer.
type line struct {
	ID       string          `json:"id"`
	Family   string          `json:"family"`
	Scenario json.RawMessage `json:"scenario"`
	Expected any             `json:"expected"`
}

type outcome struct {
	answered []byte
	problem  string
}

func main() {
	repeat := flag.Int("repeat", 3, "how often each case is asked; one that is not answered the same each time is left out")
	workers := flag.Int("workers", 4*runtime.NumCPU(), "how many cases are asked at the same time")
	flag.Parse()
	silenceLogs()
	if err := recordAll(os.Stdin, os.Stdout, *repeat, *workers); err != nil {
		fmt.Fprintf(os.Stderr, "recorder: %v\n", err)
		os.Exit(1)
	}
}

// silenceLogs keeps standard error free for the problems of cases, one line each.
func silenceLogs() {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("logtostderr", "false")
	_ = flags.Set("alsologtostderr", "false")
	_ = flags.Set("stderrthreshold", "4")
	klog.SetOutput(io.Discard)
	klog.SetLogger(klog.Logger{})
}

// recordAll keeps the order of the lines, although several are asked at once.
func recordAll(in io.Reader, out io.Writer, repeat, workers int) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 1<<20), longestLineBytes)
	writer := bufio.NewWriter(out)
	defer writer.Flush()

	pending := make(chan chan outcome, workers)
	scanned := make(chan error, 1)
	go func() {
		defer close(pending)
		number := 0
		for lines.Scan() {
			number++
			text := append([]byte(nil), lines.Bytes()...)
			done := make(chan outcome, 1)
			pending <- done
			go func(number int) { done <- answer(text, number, repeat) }(number)
		}
		scanned <- lines.Err()
	}()
	for done := range pending {
		result := <-done
		if result.problem != "" {
			fmt.Fprintln(os.Stderr, result.problem)
			continue
		}
		if _, err := writer.Write(append(result.answered, '\n')); err != nil {
			return err
		}
		if err := writer.Flush(); err != nil {
			return err
		}
	}
	return <-scanned
}

// answer turns one line into the line with its answer, or into one sentence about why not.
func answer(text []byte, number, repeat int) (result outcome) {
	asked := line{}
	defer func() {
		if panicked := recover(); panicked != nil {
			result = outcome{problem: fmt.Sprintf("line %d, case %q: kube-scheduler panicked: %v", number, asked.ID, panicked)}
		}
	}()
	if err := json.Unmarshal(text, &asked); err != nil {
		return outcome{problem: fmt.Sprintf("line %d is not a JSON object with id, family and scenario: %v", number, err)}
	}
	var first []byte
	for round := 0; round < repeat; round++ {
		expected, err := ask(asked.Scenario)
		if err != nil {
			return outcome{problem: fmt.Sprintf("line %d, case %q: %v", number, asked.ID, err)}
		}
		asked.Expected = expected
		encoded, err := encode(asked)
		if err != nil {
			return outcome{problem: fmt.Sprintf("line %d, case %q: %v", number, asked.ID, err)}
		}
		if first == nil {
			first = encoded
		} else if string(first) != string(encoded) {
			return outcome{problem: fmt.Sprintf("line %d, case %q is left out: the answer changes from one time to the next", number, asked.ID)}
		}
	}
	return outcome{answered: first}
}

func ask(text json.RawMessage) (any, error) {
	kind := struct {
		Steps json.RawMessage `json:"steps"`
	}{}
	if err := json.Unmarshal(text, &kind); err != nil {
		return nil, fmt.Errorf("its scenario is not a JSON object: %w", err)
	}
	if kind.Steps != nil {
		return recordQueue(text)
	}
	return recordDecision(text)
}

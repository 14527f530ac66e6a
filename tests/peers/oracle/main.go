// The oracle answers with Karmada's own code: one question a line of JSON on standard input, one answer a line on
// standard output, in order. {"ask": NAME, ...} is answered {"answer": ...} or {"error": "why"}. It has no state and
// asks no server, so that a test can put thousands of questions to it in a second.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/klog/v2"
)

// answers holds what can be asked, by name; the other files register theirs.
var answers = map[string]func(json.RawMessage) (any, error){}

func main() {
	klog.SetLogger(klog.Logger{})
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 0, 1<<20), 1<<26)
	out := bufio.NewWriter(os.Stdout)
	lines := json.NewEncoder(out)
	for in.Scan() {
		if err := lines.Encode(reply(in.Bytes())); err != nil {
			fmt.Fprintln(os.Stderr, "oracle:", err)
			os.Exit(1)
		}
		out.Flush()
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func reply(line []byte) (said map[string]any) {
	// The original panics on some input; that is its answer then.
	defer func() {
		if cause := recover(); cause != nil {
			said = map[string]any{"error": fmt.Sprint("panic: ", cause)}
		}
	}()
	var question struct {
		Ask string `json:"ask"`
	}
	if err := json.Unmarshal(line, &question); err != nil {
		return map[string]any{"error": err.Error()}
	}
	answer, known := answers[question.Ask]
	if !known {
		return map[string]any{"error": "nothing answers " + question.Ask}
	}
	said, err := map[string]any{}, error(nil)
	if said["answer"], err = answer(line); err != nil {
		return map[string]any{"error": err.Error()}
	}
	return said
}

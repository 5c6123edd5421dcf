package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"reflect"
	"strings"
)

// texts lists the fields of results that hold prose, and policyVersion, the
// digest of a built-in policy's source.
var texts = map[string]bool{"reason": true, "policyVersion": true, "build": true}

// compare runs one command with both binaries and records whether the exit codes
// and the results are equal.
func (c *comparison) compare(name string, args []string) error {
	older, oldCode, err := c.result(c.old, args)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	newer, newCode, err := c.result(c.new, args)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.compared++
	if oldCode == newCode && reflect.DeepEqual(older, newer) {
		return nil
	}
	c.differing++
	fmt.Fprintf(c.out, "%s: exit codes %d and %d; %s\n", name, oldCode, newCode, firstDifference("result", older, newer))
	return nil
}

// result runs a command and returns its JSON documents without ignored fields. An
// exit code other than 0 is part of the result: an expectation of an example may
// not hold under another policy.
func (c *comparison) result(binary string, args []string) (documents []any, code int, err error) {
	out, code, err := run(binary, args...)
	if err != nil {
		return nil, 0, err
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	decoder.UseNumber()
	for {
		var document any
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return documents, code, nil
		case err != nil:
			return nil, 0, fmt.Errorf("%s %s: %w", binary, strings.Join(args, " "), err)
		}
		documents = append(documents, c.withoutIgnored(document))
	}
}

func (c *comparison) withoutIgnored(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			if c.ignored[key] {
				delete(v, key)
				continue
			}
			v[key] = c.withoutIgnored(v[key])
		}
	case []any:
		for i := range v {
			v[i] = c.withoutIgnored(v[i])
		}
	}
	return v
}

// firstDifference describes the first place at which two documents differ.
func firstDifference(at string, a, b any) string {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		for key := range x {
			if !reflect.DeepEqual(x[key], y[key]) {
				return firstDifference(at+"."+key, x[key], y[key])
			}
		}
	case []any:
		y, ok := b.([]any)
		if !ok {
			break
		}
		for i := range min(len(x), len(y)) {
			if !reflect.DeepEqual(x[i], y[i]) {
				return firstDifference(fmt.Sprintf("%s[%d]", at, i), x[i], y[i])
			}
		}
		return fmt.Sprintf("%s has %d and %d entries", at, len(x), len(y))
	}
	return fmt.Sprintf("%s: %v and %v", at, a, b)
}

// run returns standard output and the exit code. An error is returned only if the
// binary could not be started.
func run(binary string, args ...string) (out []byte, code int, err error) {
	cmd := exec.Command(binary, args...)
	out, err = cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return out, failed.ExitCode(), nil
	}
	return out, 0, err
}

// mustRun runs a command that must succeed.
func mustRun(binary string, args ...string) error {
	_, err := exec.Command(binary, args...).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("%s %s: exit code %d: %s", binary, strings.Join(args, " "), failed.ExitCode(), failed.Stderr)
	}
	return err
}

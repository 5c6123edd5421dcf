package job

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// change is a field that differs between two versions of a job.
type change struct {
	Path   string
	Before string `json:",omitempty"`
	After  string `json:",omitempty"`
}

func (c change) String() string {
	switch {
	case c.Before == "":
		return fmt.Sprintf("+ %s: %s", c.Path, c.After)
	case c.After == "":
		return fmt.Sprintf("- %s: %s", c.Path, c.Before)
	}
	return fmt.Sprintf("~ %s: %s -> %s", c.Path, c.Before, c.After)
}

// jobChanges returns the fields that differ between two versions of a job. Fields that the
// server sets are excluded, except that the job was stopped or started.
func jobChanges(before, after *client.Job) []change {
	a, b := flatten(before), flatten(after)
	var list []change
	keys := map[string]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if a[k] != b[k] {
			list = append(list, change{k, a[k], b[k]})
		}
	}
	if before != nil && after != nil && before.Stop != after.Stop {
		list = append(list, change{"Stop", fmt.Sprint(before.Stop), fmt.Sprint(after.Stop)})
	}
	return list
}

// serverSet lists the fields of a job that the server sets.
var serverSet = []string{"Stop", "Status", "StatusDescription", "Version", "SubmitTime", "CreateIndex", "ModifyIndex", "JobModifyIndex"}

// flatten returns the values of a job by path.
func flatten(j *client.Job) map[string]string {
	flat := map[string]string{}
	if j == nil {
		return flat
	}
	text, err := json.Marshal(j)
	if err != nil {
		return flat // plain values always marshal
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var m map[string]any
	if d.Decode(&m) != nil {
		return flat // does not happen: the text was just encoded
	}
	for _, name := range serverSet {
		delete(m, name)
	}
	flattenInto(flat, "", m)
	return flat
}

// isSpan reports whether a field is a duration in nanoseconds.
func isSpan(path string) bool {
	return strings.HasSuffix(path, ".KillTimeout") || strings.HasSuffix(path, ".Duration") || strings.HasSuffix(path, ".Checkpoint") ||
		strings.HasSuffix(path, ".LostAfter")
}

// flattenInto adds a value. Groups and tasks are identified by name, so that inserting one
// does not change the paths of the others.
func flattenInto(flat map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			at := k
			if path != "" {
				at = path + "." + k
			}
			flattenInto(flat, at, e)
		}
	case []any:
		for i, e := range v {
			key := strconv.Itoa(i)
			if m, ok := e.(map[string]any); ok {
				if name, ok := m["Name"].(string); ok && name != "" {
					key = name
				}
			}
			flattenInto(flat, path+"["+key+"]", e)
		}
	case nil:
	case string:
		flat[path] = strconv.Quote(v)
	case json.Number:
		flat[path] = v.String()
		if ns, err := v.Int64(); err == nil && isSpan(path) {
			flat[path] = time.Duration(ns).String()
		}
	default:
		flat[path] = fmt.Sprint(v)
	}
}

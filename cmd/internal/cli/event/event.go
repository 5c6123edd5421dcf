package event

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// NewCommand returns `cede event` with its subcommands.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "event", Short: "Stream events of the cluster",
		Long: `Stream events of the cluster as they happen.`, Example: "  cede event stream --topic Preemption",
	}
	cmdutil.MakeGroup(cmd)
	cmd.AddCommand(newEventStreamCmd(env))
	return cmd
}

// eventTopics lists the topics of events.
var eventTopics = []string{"Job", "Evaluation", "Allocation", "Node", "Policy", "Preemption", "Decision", "Operator", "Cluster", "Binding", "Assignment"}

// errEnough ends a stream after the requested number of events.
var errEnough = errors.New("enough")

// eventStream holds the flags of `cede event stream`.
type eventStream struct {
	out   *cmdutil.Output
	limit int
	shown int
}

func newEventStreamCmd(env *cmdutil.Env) *cobra.Command {
	s := &eventStream{}
	cmd := &cobra.Command{
		Use:   "stream",
		Short: "Print events as they happen",
		Long: `Print events as they happen, one a line, until interrupted; with -o json, one JSON
object a line. If the connection is lost, the stream resumes after the last event.
Events that servers no longer retain are skipped. Topics:

  ` + strings.Join(eventTopics, ", "),
		Example: "  cede event stream --topic Preemption --topic Job:web\n  cede event stream --index 1200 -o json",
		Args:    cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	s.out = cmdutil.OutputFlags(cmd, env)
	conn := cmdutil.ConnectionFlags(cmd, env)
	topics := cmd.Flags().StringArray("topic", nil, "`TOPIC` or TOPIC:KEY; may be repeated (default: all)")
	index := cmd.Flags().Uint64("index", 0, "start after `INDEX` of the log; 0: now")
	cmd.Flags().IntVar(&s.limit, "limit", 0, "stop after `N` events; 0: never")
	cmdutil.CompleteFlag(cmd, "topic", eventTopics)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := s.out.Resolve(); err != nil {
			return err
		}
		for _, t := range *topics {
			name, _, _ := strings.Cut(t, ":")
			if name != "*" && !slices.Contains(eventTopics, name) {
				return cmdutil.Usagef("use "+cmdutil.JoinOr(eventTopics), "unknown topic in --topic %q", t)
			}
		}
		return s.run(cmd.Context(), conn, &client.StreamOptions{Topics: *topics, Index: *index, Namespace: conn.RequestedNamespace()})
	}
	return cmd
}

func (s *eventStream) run(ctx context.Context, conn *cmdutil.Connection, o *client.StreamOptions) error {
	api, err := conn.Dial()
	if err != nil {
		return err
	}
	err = api.Events().Stream(ctx, o, func(batch *client.Events) error {
		if batch.Newest > 0 && batch.Newest < o.Index { // otherwise another server answered, whose state is older
			conn.Env.Warn(fmt.Sprintf("index %d does not exist yet: the newest is %d", o.Index, batch.Newest))
		}
		if l := batch.Lost; l != nil {
			conn.Env.Warn(fmt.Sprintf("events of indexes %d to %d are no longer retained and are not shown", l.From, l.To))
		}
		for i := range batch.Events {
			if err := s.show(&batch.Events[i]); err != nil {
				return err
			}
			if s.shown++; s.limit > 0 && s.shown == s.limit {
				return errEnough
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return cmdutil.InterruptError(ctx, err)
}

// show prints an event at once. Each event is a document and a line of its own.
func (s *eventStream) show(e *client.Event) error {
	s.out.Printed = 0 // no blank line between them
	if s.out.Format == cmdutil.FormatYAML && s.shown > 0 {
		s.out.Printed = 1
	}
	return s.out.Show(cmdutil.Document{Data: e, Names: []string{e.Key}, Page: func(p cmdutil.Page) {
		key := e.Key
		if e.Namespace != "" && e.Namespace != "default" {
			key = e.Namespace + "/" + key
		}
		p.Printf("%s  %-10s  %-22s  %s", cmdutil.FormatTime(e.Time), e.Topic, e.Type, p.ID(key))
		if text := payload(e.Payload, p.Wide); text != "" {
			p.Printf("  %s", text)
		}
		p.Printf("\n")
	}})
}

// payload formats the plain fields of an event on one line.
func payload(text json.RawMessage, wide bool) string {
	if len(text) == 0 || bytes.Equal(text, []byte("null")) {
		return ""
	}
	if wide {
		return string(text)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var words []string
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return string(text)
	}
	for d.More() { // in the order of the server's document
		key, err := d.Token()
		if err != nil {
			return strings.Join(words, " ")
		}
		var v any
		if d.Decode(&v) != nil {
			return strings.Join(words, " ")
		}
		switch v := v.(type) {
		case string:
			if v != "" {
				words = append(words, fmt.Sprintf("%s=%s", key, v))
			}
		case json.Number, bool:
			words = append(words, fmt.Sprintf("%s=%v", key, v))
		case []any:
			if len(v) > 0 {
				words = append(words, fmt.Sprintf("%s=%s", key, listed(v)))
			}
		}
	}
	return strings.Join(words, " ")
}

func listed(list []any) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = cmdutil.FormatDetail(v)
	}
	return strings.Join(words, ",")
}

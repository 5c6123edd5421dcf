// Command sameresults compares two cede binaries: it plays the same scenarios,
// traces and recorded logs with both, and reports every result that differs.
// Texts are not compared: a refactoring may reword a reason, but it must not
// change a placement, a victim, a metric or a state hash.
//
//	go build -o /tmp/old ./cmd/cede      # at the older commit
//	go build -o /tmp/new ./cmd/cede      # at the newer commit
//	go run ./cmd/internal/sameresults -old /tmp/old -new /tmp/new -seeds 500 -traces ../shared/traces
//
// It exits with 0 if all results are equal, 1 if one differs, and 2 if the
// comparison could not run.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// errDiffers is returned if at least one result differs.
var errDiffers = errors.New("results differ")

func main() {
	c, err := parse(os.Args[1:])
	if err == nil {
		err = c.run()
	}
	switch {
	case errors.Is(err, errDiffers):
		fmt.Fprintln(os.Stderr, "sameresults:", err)
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "sameresults:", err)
		os.Exit(2)
	}
}

// comparison holds the parameters of one run of the command.
type comparison struct {
	old, new     string          // paths of the binaries
	policies     []string        // names of built-in policies
	seeds        int             // generated scenarios, spread over the descriptions
	descriptions []string        // presets or files
	traces       string          // folder of public traces; empty: none are played
	examples     string          // folder of examples
	logs         bool            // record a server's log with old and replay it with both
	ignored      map[string]bool // fields that are not compared
	out          io.Writer
	dir          string // temporary folder

	compared, differing int
}

func parse(args []string) (*comparison, error) {
	c := &comparison{out: os.Stdout}
	flags := flag.NewFlagSet("sameresults", flag.ExitOnError)
	flags.StringVar(&c.old, "old", "", "binary of the older code")
	flags.StringVar(&c.new, "new", "", "binary of the newer code")
	flags.IntVar(&c.seeds, "seeds", 30, "number of generated scenarios")
	flags.StringVar(&c.traces, "traces", "", "folder of traces: google-2011, metacentrum-2013, openb-2023")
	flags.StringVar(&c.examples, "examples", "examples", "folder of example scenarios")
	flags.BoolVar(&c.logs, "logs", true, "record a server's log with the older binary and replay it with both")
	ignored := flags.String("ignore", "", "fields that are not compared besides texts, such as mean,wastedHours: fields that the newer code added")
	policies := flags.String("policies", "default,nomad,kubernetes,least-waste,optimal,protect,aging,fair-share,karmada", "built-in policies")
	descriptions := flags.String("descriptions", "contended,inversion,storm", "presets or files that scenarios are generated from")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if c.old == "" || c.new == "" {
		return nil, errors.New("-old and -new are required")
	}
	c.policies, c.descriptions = strings.Split(*policies, ","), strings.Split(*descriptions, ",")
	c.ignored = maps.Clone(texts)
	for name := range strings.SplitSeq(*ignored, ",") {
		c.ignored[name] = true
	}
	return c, nil
}

// run plays everything and returns errDiffers if a result differs.
func (c *comparison) run() (err error) {
	if c.dir, err = os.MkdirTemp("", "sameresults"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
	for _, part := range []func() error{c.playExamples, c.playGenerated, c.playTraces, c.replayLogs} {
		if err := part(); err != nil {
			return err
		}
	}
	fmt.Fprintf(c.out, "%d results compared, %d differ\n", c.compared, c.differing)
	if c.differing > 0 {
		return errDiffers
	}
	return nil
}

func (c *comparison) playExamples() error {
	files, err := filepath.Glob(filepath.Join(c.examples, "*", "scenario.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no example scenario in %q", c.examples)
	}
	return c.playAll(files)
}

// playGenerated plays scenarios drawn from the descriptions. The older
// binary writes them, so that both play the same file.
func (c *comparison) playGenerated() error {
	for i := range c.seeds {
		description, seed := c.descriptions[i%len(c.descriptions)], i/len(c.descriptions)+1
		name := strings.TrimSuffix(filepath.Base(description), ".yaml")
		file := filepath.Join(c.dir, fmt.Sprintf("%s-%d.yaml", name, seed))
		if err := mustRun(c.old, "sim", "generate", description, "--seed", fmt.Sprint(seed), "-w", file); err != nil {
			return err
		}
		if err := c.playAll([]string{file}); err != nil {
			return err
		}
	}
	return nil
}

// playTraces plays the three public traces, each on a part of its cluster that
// is contended.
func (c *comparison) playTraces() error {
	if c.traces == "" {
		return nil
	}
	for _, args := range [][]string{
		{"google", "google-2011", "--sample", "0.02"},
		{"openb", "openb-2023", "--nodes", "14"},
		{"swf", "metacentrum-2013/wagap-2013.swf.gz"},
	} {
		file := filepath.Join(c.dir, args[0]+".yaml")
		args[1] = filepath.Join(c.traces, args[1])
		if err := mustRun(c.old, append(append([]string{"sim", "import"}, args...), "-w", file)...); err != nil {
			return err
		}
		if err := c.playAll([]string{file}); err != nil {
			return err
		}
	}
	return nil
}

func (c *comparison) playAll(files []string) error {
	for _, file := range files {
		for _, policy := range c.policies {
			args := []string{"sim", "run", file, "-p", policy, "-o", "json"}
			if err := c.compare(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file)+" "+policy, args); err != nil {
				return err
			}
		}
	}
	return nil
}

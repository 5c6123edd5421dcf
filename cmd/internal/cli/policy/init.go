package policy

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/scaffold"
	"github.com/cede-scheduler/cede/plugins/bundle"
)

func newPolicyInitCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init NAME",
		Short: "Create a new policy in a folder",
		Long: `Create a small working policy in a new folder, with its manifest, golden cases, a
scenario in which it differs from the default policy, and the SDK, so that it builds
without network access (only the AssemblyScript compiler is downloaded from npm). NAME
can be a path; its last element is the name of the policy.

Existing files are not overwritten.`,
		Example: `  cede policy init thrifty
  cede policy init policies/thrifty --lang rust`,
		Args: cmdutil.PositionalArgs(1, 1, "the name of the new policy"),
	}
	out := cmdutil.OutputFlags(cmd, env)
	lang := cmd.Flags().String("lang", "go", "write the policy in `LANG`: "+cmdutil.JoinOr(bundle.Langs))
	cmdutil.CompleteFlag(cmd, "lang", bundle.Langs)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		started, err := initPolicy(args[0], *lang)
		if err != nil {
			return err
		}
		return out.Show(started.document())
	}
	return cmd
}

// startedPolicy is the result of cede policy init.
type startedPolicy struct {
	Policy string   `json:"policy"`
	Lang   string   `json:"lang"`
	Folder string   `json:"folder"`
	Source string   `json:"source"`
	Files  []string `json:"files"`

	sdk int // files of the SDK, at the end of the list
}

func initPolicy(folder, lang string) (*startedPolicy, error) {
	p := scaffold.Project{Name: filepath.Base(filepath.Clean(folder)), Lang: lang}
	if err := scaffold.CheckName(p.Name); err != nil {
		return nil, cmdutil.Usagef("use a name such as thrifty", "%v", err)
	}
	if slices.Contains(builtin.Names(), p.Name) {
		return nil, cmdutil.Usagef("choose another name", "%s is the name of a built-in policy", p.Name)
	}
	if !slices.Contains(bundle.Langs, lang) {
		return nil, cmdutil.Usagef("use "+cmdutil.JoinOr(bundle.Langs), "unsupported --lang %q", lang)
	}
	files, err := p.Files()
	if err != nil {
		return nil, err
	}
	switch err := scaffold.Write(folder, files); {
	case errors.Is(err, scaffold.ErrNotEmpty):
		return nil, cmdutil.Usagef("use a new folder; nothing was changed", "folder %s is not empty", folder)
	case err != nil:
		return nil, cmdutil.WriteError(folder, err)
	}
	s := &startedPolicy{Policy: p.Name, Lang: lang, Folder: folder, Source: p.Source()}
	for _, f := range files {
		s.Files = append(s.Files, f.Name)
		if f.SDK {
			s.sdk++
		}
	}
	return s, nil
}

func (s *startedPolicy) document() cmdutil.Document {
	return cmdutil.Document{Data: s, Names: []string{s.Policy}, Page: s.page}
}

func (s *startedPolicy) page(p cmdutil.Page) {
	own := s.Files[:len(s.Files)-s.sdk]
	if p.Wide {
		own = s.Files
	}
	if !p.NoHeaders {
		p.Printf("%s\n", s.Folder)
	}
	for _, name := range own {
		p.Printf("  %s\n", name)
	}
	if len(own) < len(s.Files) {
		p.Printf("  third_party/cede: the SDK, %d files (-o wide lists them)\n", s.sdk)
	}
	if p.NoHeaders {
		return
	}
	f := s.Folder
	p.Printf("\nNext: edit %s, then\n", filepath.Join(f, s.Source))
	if s.Lang == "assemblyscript" {
		p.Printf("  npm install --prefix %s\n", f)
	}
	for _, next := range []string{
		"cede policy build " + f,
		"cede policy test " + f,
		fmt.Sprintf("cede compare %s -p default -p %s", filepath.Join(f, "scenario.yaml"), f),
	} {
		p.Printf("  %s\n", next)
	}
}

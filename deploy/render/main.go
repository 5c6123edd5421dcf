// Command render prints the Kubernetes objects of a kustomization or of a Helm chart, so
// that a test can compare them. It is a module of its own, which keeps the libraries of
// kustomize and Helm out of cede.
package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "kustomize":
		return kustomize(args[1], out)
	case len(args) >= 2 && args[0] == "helm":
		return helm(args[1], args[2:], out)
	}
	return errors.New("usage: render kustomize DIR | render helm DIR [VALUES...]")
}

// kustomize prints the objects of a kustomization.
func kustomize(dir string, out io.Writer) error {
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return err
	}
	text, err := objects.AsYaml()
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

// helm prints the objects of a chart as `helm template cede DIR --namespace cede` does. Later
// files of values override earlier ones. The schema of the chart is applied.
func helm(dir string, files []string, out io.Writer) error {
	c, err := loader.Load(dir)
	if err != nil {
		return err
	}
	values := map[string]any{}
	for _, file := range files {
		more, err := chartutil.ReadValuesFile(file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		values = chartutil.CoalesceTables(more, values)
	}
	release := chartutil.ReleaseOptions{Name: "cede", Namespace: "cede", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	rendered, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if strings.HasSuffix(name, ".txt") || strings.TrimSpace(rendered[name]) == "" {
			continue
		}
		if _, err := fmt.Fprintf(out, "---\n%s\n", rendered[name]); err != nil {
			return err
		}
	}
	return nil
}

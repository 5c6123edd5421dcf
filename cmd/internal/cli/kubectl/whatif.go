package kubectl

import (
	"bytes"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/compare"
	"github.com/cede-scheduler/cede/core/kube"
)

// maxManifest is the maximum size of a manifest.
const maxManifest = 16 << 20

// basePolicy reproduces the rules of kube-scheduler.
const basePolicy = "kubernetes"

func newWhatIfCmd(c *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "what-if FILE",
		Short:       "Show which pods a manifest would evict now",
		Annotations: cmdutil.ExitCodes("3 the API server cannot be reached", "6 a policy cannot place the workload", "7 a policy failed"),
		Long: `Show which pods a workload would evict if it were created now, under each policy.
FILE is a manifest of a Pod, Deployment, StatefulSet, DaemonSet or Job, or a job file.
Pods that are already pending are ignored.

The policy kubernetes reproduces the rules of kube-scheduler.`,
		Example: `  cede kubectl what-if pod.yaml
  cede kubectl what-if deployment.yaml -p kubernetes -p 'protect?minRuntime=10m' -o json`,
		Args: cmdutil.PositionalArgs(1, 1, "a manifest"),
	}
	live := compare.NewLive(cmd, c.env, basePolicy)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := live.Resolve(1, basePolicy); err != nil {
			return err
		}
		d, err := c.dump(cmd.Context())
		if err != nil {
			return err
		}
		// The devices that the claims of the manifest select are part of the scenario.
		// Other problems of the file are reported when it is evaluated.
		if text, err := c.env.ReadFile(args[0], maxManifest); err == nil {
			if manifest, err := kube.Read(bytes.NewReader(text)); err == nil {
				d.Devices.Claims = append(d.Devices.Claims, manifest.Devices.Claims...)
				d.Devices.Templates = append(d.Devices.Templates, manifest.Devices.Templates...)
			}
		}
		f, err := c.scenario(d)
		if err != nil {
			return err
		}
		return live.WhatIfFile(cmd.Context(), f, args[0], d)
	}
	return cmd
}

func newCompareCmd(c *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "compare",
		Short:       "Compare policies on the pending pods of the cluster",
		Annotations: cmdutil.ExitCodes("3 the API server cannot be reached", "7 a policy failed"),
		Long: `Place the pending pods of the cluster under every policy, and report how the policies
differ. Without -p these are all built-in policies; the first is the baseline. The cluster
is simulated from its current state, with its running pods, budgets and priorities.`,
		Example: `  cede kubectl compare
  cede kubectl compare -p kubernetes -p my.wasm -o json`,
		Args: cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	live := compare.NewLive(cmd, c.env, "all built-in policies")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		all := []string{basePolicy}
		for _, name := range builtin.Names() {
			if name != basePolicy {
				all = append(all, name)
			}
		}
		if err := live.Resolve(2, all...); err != nil {
			return err
		}
		d, err := c.dump(cmd.Context())
		if err != nil {
			return err
		}
		f, err := c.scenario(d)
		if err != nil {
			return err
		}
		for _, e := range f.Events {
			if e.Submit != "" {
				return live.Compare(cmd.Context(), f)
			}
		}
		return &cmdutil.Error{
			Exit: cmdutil.ExitNotFound, Code: cmdutil.CodeError, Message: "nothing to compare: the cluster has no pending pods",
			Hint: "`kubectl cede what-if FILE -p P -p Q` compares policies on the pods of a manifest",
		}
	}
	return cmd
}

package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/sdk/client"
)

const (
	// checksWithin is the default timeout for the checks of all servers.
	checksWithin = 10 * time.Minute
	// checksQuiet is the time before missing checks are reported: servers compile the
	// policy in that time.
	checksQuiet = 3 * time.Second
	// checksEvery is the interval between status requests.
	checksEvery = time.Second
)

// loadChecked loads a policy and waits until all required servers have checked it, or
// until the timeout; then Awaited lists the missing checks. The load request itself waits
// briefly: the server would return nothing in that time, and accept no other load. It also
// returns the names of the servers.
func loadChecked(ctx context.Context, env *cmdutil.Env, c *client.Client, load *client.PolicyLoad, within time.Duration) (v *client.PolicyVersion, names cmdutil.ServerNames, err error) {
	end := env.Clock.Now().Add(within)
	load.Wait = max(min(checksQuiet, within), time.Millisecond)
	if v, err = c.Policies().Load(ctx, load); err != nil {
		return nil, nil, err
	}
	names = cmdutil.ReadServerNames(ctx, c)
	printed := map[string]bool{}
	for err == nil && len(v.Awaited) > 0 && env.Clock.Now().Before(end) {
		reportAwaited(env, v, names, printed)
		env.Sleep(ctx, checksEvery)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		v, err = checkedSince(ctx, c, v)
	}
	return v, names, err
}

// reportAwaited prints each missing check once. With -o json it prints nothing; programs
// read Awaited.
func reportAwaited(env *cmdutil.Env, v *client.PolicyVersion, names cmdutil.ServerNames, printed map[string]bool) {
	if env.JSONErrors {
		return
	}
	name := policyflags.VersionName(v.Name, v.ID)
	for _, line := range awaitedLines(v, names) {
		if !printed[line] {
			printed[line] = true
			_, _ = fmt.Fprintf(env.Stderr, "%s: waiting for the check by %s\n", name, line) // an error on stderr cannot be reported
		}
	}
}

// checkedSince returns the current state of a version. If no server can return it, v is
// returned unchanged.
func checkedSince(ctx context.Context, c *client.Client, v *client.PolicyVersion) (*client.PolicyVersion, error) {
	st, _, err := c.Policies().Status(ctx, v.Name, &client.QueryOptions{Consistent: true})
	if err != nil && !client.IsNotFound(err) {
		return v, ctx.Err()
	}
	if err == nil {
		for _, now := range st.Loaded {
			if now.ID == v.ID {
				return now, nil
			}
		}
	}
	return nil, &cmdutil.Error{
		Exit: cmdutil.ExitConflict, Code: client.CodeConflict, Message: policyflags.VersionName(v.Name, v.ID) + " was unloaded while it was being checked",
		Hint: "load it again",
	}
}

// awaitedLines returns the missing checks with their reasons, by server.
func awaitedLines(v *client.PolicyVersion, names cmdutil.ServerNames) []string {
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(v.Awaited)) {
		lines = append(lines, "server "+names.Full(id)+": "+v.Awaited[id])
	}
	return lines
}

// uncheckedBy returns the servers that have never checked the version; one that retries
// has its previous check.
func uncheckedBy(v *client.PolicyVersion) []string {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(v.Awaited)) {
		if _, there := v.Checks[id]; !there {
			ids = append(ids, id)
		}
	}
	return ids
}

package kubectl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/kube/watch"
	"github.com/cede-scheduler/cede/core/sim/importer"
)

// requestTimeout limits one request to the API server.
const requestTimeout = 30 * time.Second

// A cluster is the cluster that the flags select.
type cluster struct {
	env                            *cmdutil.Env
	kubeconfig, context, namespace string // flags; after connect, the names that apply

	config *rest.Config
	reader *watch.Reader
}

// connect reads the kubeconfig. It sends no request.
func (c *cluster) connect() error {
	watch.SetLogger(slog.New(slog.DiscardHandler)) // errors are returned as well
	config, err := watch.LoadConfig(c.kubeconfig, c.context)
	if err == nil {
		var namespace string
		if c.context, namespace, err = watch.LoadNames(c.kubeconfig, c.context); err == nil {
			c.namespace = cmp.Or(c.namespace, namespace)
			config.Timeout, config.QPS = requestTimeout, -1
			c.config = config
			c.reader, err = watch.NewReader(config)
		}
	}
	if err != nil {
		return cmdutil.Usagef("set --kubeconfig, --context or $KUBECONFIG; `kubectl config get-contexts` lists the contexts", "invalid kubeconfig: %v", err)
	}
	return nil
}

// dump reads the cluster.
func (c *cluster) dump(ctx context.Context) (*kube.Dump, error) {
	if err := c.connect(); err != nil {
		return nil, err
	}
	done := c.env.Waiting("reading the cluster")
	d, err := c.reader.Dump(ctx)
	done()
	if err != nil {
		return nil, c.requestError(ctx, err)
	}
	return d, nil
}

// scenario returns the cluster as a scenario, and warns of facts that it cannot express.
func (c *cluster) scenario(d *kube.Dump) (*simrun.ScenarioFile, error) {
	if len(d.Nodes)+len(d.Pods) == 0 {
		return nil, &cmdutil.Error{Exit: cmdutil.ExitError, Code: cmdutil.CodeInvalid, Message: "the cluster has no nodes and no pods", Hint: "check --context"}
	}
	name := importer.CleanName(cmp.Or(c.context, "cluster"))
	f, report, err := importer.KubeDump(name, d)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	for _, n := range report.Notes {
		c.env.Warn(fmt.Sprintf("%s: %d %s: %s", name, n.Count, n.Subject, n.Handling))
	}
	return &simrun.ScenarioFile{File: f, Path: "cluster " + name}, nil
}

// requestError returns the error of failed requests: each with the permission that it
// needs, or one if the API server cannot be reached.
func (c *cluster) requestError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var failed []*watch.RequestError
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, each := range several.Unwrap() {
			if one, ok := errors.AsType[*watch.RequestError](each); ok {
				failed = append(failed, one)
			}
		}
	} else if one, ok := errors.AsType[*watch.RequestError](err); ok {
		failed = append(failed, one)
	}
	var lines, missing []string
	for _, e := range failed {
		if isUnreachable(e) {
			return &cmdutil.Error{
				Exit: cmdutil.ExitUnreachable, Code: cmdutil.CodeUnreachable, Message: fmt.Sprintf("cannot reach the API server at %s: %v", c.config.Host, rootCause(e.Err)),
				Hint: "check --kubeconfig and --context; `kubectl cluster-info` uses the same address", Err: err,
			}
		}
		lines = append(lines, e.Error())
		if apierrors.IsForbidden(e.Err) {
			missing = append(missing, e.Verb+" "+e.Resource)
		}
	}
	result := &cmdutil.Error{Exit: cmdutil.ExitError, Code: cmdutil.CodeError, Message: "cannot read the cluster", Lines: lines, Details: lines, Err: err}
	switch {
	case len(failed) == 0:
		return err
	case len(missing) > 0:
		slices.Sort(missing)
		result.Code, result.Message = codeForbidden, "missing permissions in all namespaces: "+strings.Join(missing, ", ")
		result.Hint = "grant them by a ClusterRole, or use other credentials; `kubectl auth can-i " + missing[0] + " -A` checks one"
	case slices.ContainsFunc(failed, func(e *watch.RequestError) bool { return apierrors.IsUnauthorized(e.Err) }):
		result.Code, result.Message, result.Hint = codeForbidden, "the API server rejects the credentials of the kubeconfig", "renew them, or choose others by --context"
	default:
		result.Hint = "`kubectl get --raw /readyz` shows whether the API server is healthy"
	}
	return result
}

const codeForbidden = "forbidden"

// isUnreachable reports whether a request received no response.
func isUnreachable(err error) bool {
	if _, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return false
	}
	_, byURL := errors.AsType[*url.Error](err)
	_, byNetwork := errors.AsType[net.Error](err)
	return byURL || byNetwork
}

// rootCause returns the error of a connection without the URL of the request.
func rootCause(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// Command kube-scheduler is kube-scheduler with the plugin Cede, which lets a policy of
// cede choose evictions. All flags and the configuration are those of kube-scheduler.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // the JSON log format
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of clients
	_ "k8s.io/component-base/metrics/prometheus/version"  // the version metric
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/cede-scheduler/cede/plugins/kubernetes"
)

func main() {
	os.Exit(cli.Run(app.NewSchedulerCommand(app.WithPlugin(kubernetes.Name, kubernetes.New))))
}

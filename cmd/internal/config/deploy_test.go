package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/cmd/internal/config"
)

const deploy = "../../../examples/deploy"

func example(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(deploy, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Every example must be a valid configuration, because users copy it.
func TestDeploy_ExamplesAreValid(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(deploy, "etc", "*.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		dev := filepath.Base(file) == "dev.yaml"
		// The file of the token does not exist where tests run.
		if _, err := config.Load(config.Sources{Files: []string{file}, Dev: dev, Environ: []string{"CEDE_CLIENT__TOKEN=x"}}); err != nil {
			t.Error(err)
		}
	}
}

// An alert on a metric that is not registered never fires.
func TestDeploy_AlertsUseRegisteredMetrics(t *testing.T) {
	t.Parallel()
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations struct{ Summary, Remedy string }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(example(t, "prometheus/alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	table, others := example(t, "../../core/server/METRICS.md"), []string{"cede_config_last_reload_successful"} // a metric of the process itself
	rules := 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			rules++
			if rule.Alert == "" || rule.Annotations.Summary == "" || rule.Annotations.Remedy == "" {
				t.Errorf("%+v lacks a summary or a remedy", rule)
			}
			names := regexp.MustCompile(`cede_\w+`).FindAllString(rule.Expr, -1)
			if len(names) == 0 {
				t.Errorf("%s uses no metric", rule.Alert)
			}
			checkLabels(t, rule.Alert, rule.Expr, table)
			for _, name := range names {
				if !strings.Contains(table, "| `"+name+"` |") && !slices.Contains(others, name) {
					t.Errorf("%s uses the metric %s, which is not registered", rule.Alert, name)
				}
			}
		}
	}
	if rules < 5 {
		t.Errorf("%d rules", rules)
	}
}

// checkLabels reports labels of an expression that none of its metrics has. Prometheus
// itself adds instance and job.
func checkLabels(t *testing.T, alert, expr, table string) {
	t.Helper()
	known := []string{"instance", "job", "le"}
	for _, name := range regexp.MustCompile(`cede_\w+`).FindAllString(expr, -1) {
		row := regexp.MustCompile("(?m)^\\| `" + name + "` \\| [^|]+ \\|([^|]*)\\|").FindStringSubmatch(table)
		if row == nil {
			continue
		}
		for _, label := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1) {
			known = append(known, label[1])
		}
	}
	var used []string
	for _, list := range regexp.MustCompile(`(?:by|without) \(([^)]*)\)`).FindAllStringSubmatch(expr, -1) {
		used = append(used, strings.Split(list[1], ", ")...)
	}
	for _, matcher := range regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"`).FindAllStringSubmatch(expr, -1) {
		used = append(used, matcher[1])
	}
	for _, label := range used {
		if !slices.Contains(known, label) {
			t.Errorf("%s uses the label %s, which none of its metrics has", alert, label)
		}
	}
}

// The Prometheus configuration matches a server with these settings: TLS, the token,
// and the alert rules.
func TestDeploy_ScrapeConfigMatchesListener(t *testing.T) {
	t.Parallel()
	var file struct {
		RuleFiles []string `yaml:"rule_files"`
		Scrape    []struct {
			Scheme        string
			Authorization struct{ Type string }
			Static        []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	text := example(t, "prometheus/scrape.yaml")
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	for _, rules := range file.RuleFiles {
		_ = example(t, "prometheus/"+rules)
	}
	if len(file.Scrape) != 1 || file.Scrape[0].Scheme != "https" || file.Scrape[0].Authorization.Type != "Bearer" || len(file.Scrape[0].Static) == 0 {
		t.Fatalf("file is %+v", file)
	}
	settings := strings.Join(regexp.MustCompile(`(?m)^#   ((?:listen|telemetry): .*)$`).FindAllString(text, -1), "\n")
	settings = strings.ReplaceAll(settings, "#   ", "")
	dir := write(t, map[string]string{"token": "a-token-of-those-who-scrape"})
	settings = strings.Replace(settings, "/etc/cede/metrics.token", filepath.Join(dir, "token"), 1)
	of := write(t, map[string]string{"c.yaml": minimal + "acl: {enabled: true}\ntls: {cert: c, key: k}\n" + settings})
	c := load(t, config.Sources{Files: []string{filepath.Join(of, "c.yaml")}})
	_, port, _ := strings.Cut(c.Listen.Metrics, ":")
	for _, target := range file.Scrape[0].Static[0].Targets {
		if !strings.HasSuffix(target, ":"+port) {
			t.Errorf("target %s does not use port %s", target, port)
		}
	}
	if c.MetricsLocal() || c.Telemetry.Token == "" || len(c.Warnings()) > 0 {
		t.Errorf("server settings %s cause warnings: %v", settings, c.Warnings())
	}
}

func TestDeploy_UnitsMatchProgram(t *testing.T) {
	t.Parallel()
	for unit, more := range map[string][]string{
		"cede-server.service": {"DynamicUser=yes", "StateDirectory=cede"},
		"cede-client.service": {"KillMode=process", "StateDirectory=cede-node"}, // work outlives the agent
	} {
		text := example(t, unit)
		for _, line := range append(more, "Type=notify", "ExecReload=/bin/kill -HUP $MAINPID", "KillSignal=SIGINT", "LimitNOFILE=65536", "Restart=on-failure") {
			if !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("%s lacks %s", unit, line)
			}
		}
		if !regexp.MustCompile(`(?m)^WatchdogSec=\d+$`).MatchString(text) {
			t.Errorf("%s has no watchdog", unit)
		}
		start := regexp.MustCompile(`(?m)^ExecStart=\S+/cede agent -c /etc/cede/(\S+)$`).FindStringSubmatch(text)
		if start == nil {
			t.Errorf("%s starts another program", unit)
			continue
		}
		directory := regexp.MustCompile(`(?m)^StateDirectory=(\S+)$`).FindStringSubmatch(text)[1]
		if !strings.Contains(example(t, filepath.Join("etc", start[1])), "data_dir: /var/lib/"+directory+"\n") {
			t.Errorf("the state directory of %s differs from data_dir in %s", unit, start[1])
		}
	}
}

func TestDeploy_ContainerRunsUnprivileged(t *testing.T) {
	t.Parallel()
	text := example(t, "Containerfile")
	start := regexp.MustCompile(`(?m)^COPY examples/deploy/(\S+) (\S+)\n(?:.*\n)*CMD \["agent", "-c", "(\S+)"\]`).FindStringSubmatch(text)
	if start == nil || start[2] != start[3] {
		t.Fatalf("the container starts with another file than the one that is copied: %q", start)
	}
	c, err := config.Load(config.Sources{Files: []string{filepath.Join(deploy, start[1])}})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Server.Enabled || c.Listen.HTTP != "0.0.0.0:4646" {
		t.Errorf("configuration is %+v", c.Config)
	}
	stages := strings.Split(text, "\nFROM ")
	last := stages[len(stages)-1]
	if !strings.HasPrefix(last, "scratch\n") || !strings.Contains(last, "\nUSER 65532:65532\n") || !strings.Contains(text, "CGO_ENABLED=0") {
		t.Errorf("want a static program in an empty image, run by an unprivileged user:\n%s", last)
	}
	if !strings.Contains(last, "VOLUME "+c.DataDir+"\n") {
		t.Errorf("%s is not a volume: its data is lost with the container", c.DataDir)
	}
}

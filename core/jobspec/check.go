package jobspec

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
	"github.com/cede-scheduler/cede/core/model/taskconfig"
	"github.com/cede-scheduler/cede/core/suggest"
	"github.com/cede-scheduler/cede/sdk/client"
)

const (
	// maxName bounds names, in bytes. Names are part of IDs, paths and messages.
	maxName = 128
	// maxGroups and the following bound the parts of one job: far more than real jobs
	// contain, and few enough that a hostile job stays cheap.
	maxGroups  = 500
	maxTasks   = 50
	maxTerms   = 200
	maxPorts   = 100
	maxEntries = 500 // per mapping
	maxText    = 16 << 10
	maxConfig  = 64 << 10
)

// jobTypes, preemptionPolicies and disruptionModes list the values of fields of a job.
var (
	jobTypes           = []string{"service", "batch", "system", "sysbatch"}
	preemptionPolicies = []string{"PreemptLowerPriority", "Never"}
	disruptionModes    = []string{disruptSingle, disruptAll}
)

// drivers lists the task drivers of agents.
var drivers = []string{"exec", "sim"}

// signals lists the valid kill signals.
var signals = []string{"SIGABRT", "SIGALRM", "SIGHUP", "SIGINT", "SIGKILL", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGWINCH"}

func (c *conversion) checkJob(j *client.Job) {
	c.name("ID", "a job's id", j.ID)
	if j.Name != "" && !printable(j.Name) {
		c.add("Name", fmt.Sprintf("invalid name %.60q: expected printable text of at most %d bytes", j.Name, maxName), "use a shorter name")
	}
	if j.Namespace != "" {
		c.name("Namespace", "a namespace", j.Namespace)
	}
	c.oneOf("Type", j.Type, jobTypes...)
	c.oneOf("PreemptionPolicy", j.PreemptionPolicy, preemptionPolicies...)
	c.oneOf("DisruptionMode", j.DisruptionMode, disruptionModes...)
	c.checkToleration("Toleration", j.Toleration)
	if p := j.Priority; p != nil && (*p < math.MinInt32 || *p > math.MaxInt32) {
		c.add("Priority", fmt.Sprintf("invalid priority %d: must be between -2147483648 and 2147483647", *p), "1 to 100 is usual")
	}
	if j.PriorityClass != "" {
		c.name("PriorityClass", "a priority class", j.PriorityClass)
	}
	if len(j.Policy) > maxName || !printable(j.Policy) && j.Policy != "" {
		c.add("Policy", fmt.Sprintf("invalid policy name %.60q", j.Policy), "`cede policy list` shows the loaded policies")
	}
	for i, dc := range j.Datacenters {
		switch {
		case dc == "*":
		case strings.ContainsAny(dc, "*?"):
			c.add(fmt.Sprintf("Datacenters[%d]", i), fmt.Sprintf("unsupported pattern %.60q", dc), `name each datacenter, or "*" for all`)
		default:
			c.name(fmt.Sprintf("Datacenters[%d]", i), "a datacenter", dc)
		}
	}
	c.checkKeys("Meta", j.Meta)
	if len(j.TaskGroups) == 0 {
		addBySyntax(c, "TaskGroups", "a job requires at least one group", bySyntax{
			api: `add "TaskGroups": [{"Name": "main", "Tasks": [...]}]`, json: `add "groups": [{"name": "main", "tasks": [...]}]`,
			hcl: `add group "main" { task "main" { ... } }`, yaml: "add groups: [{name: main, tasks: [...]}]",
		})
	}
	if len(j.TaskGroups) > maxGroups {
		c.add("TaskGroups", fmt.Sprintf("%d groups: expected at most %d", len(j.TaskGroups), maxGroups), "write several jobs")
	}
	seen := map[string]int{}
	for i, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		if first, twice := seen[g.Name]; twice && g.Name != "" {
			c.add(fmt.Sprintf("TaskGroups[%d].Name", i), fmt.Sprintf("duplicate name %.60q: already used by group %d", g.Name, first+1), "give each group of a job a unique name")
		}
		seen[g.Name] = i
	}
}

func (c *conversion) checkGroup(path string, job *model.Job, g *client.TaskGroup) {
	c.name(path+".Name", "a group's name", g.Name)
	if g.Count != nil {
		c.report(path+".Count", fieldcheck.Count(*g.Count, job.Type.String(), job.Type.PerNode()))
	}
	if m := g.Migrate; m != nil && m.MaxParallel != nil {
		c.report(path+".Migrate.MaxParallel", fieldcheck.MaxParallelEvictions(*m.MaxParallel))
	}
	c.checkKeys(path+".Labels", g.Labels)
	c.checkKeys(path+".Meta", g.Meta)
	c.checkDuration(path+".Duration", g.Duration)
	c.checkDuration(path+".Checkpoint", g.Checkpoint)
	for _, name := range slices.Sorted(maps.Keys(g.Annotations)) {
		if name == "" || len(name) > maxName {
			c.add(keyPath(path+".Annotations", name), fmt.Sprintf("invalid name of %d bytes: must have between 1 and %d", len(name), maxName), "write name: number")
		}
		c.report(keyPath(path+".Annotations", name), fieldcheck.Annotation(g.Annotations[name]))
	}
	if len(g.Tasks) > maxTasks {
		c.add(path+".Tasks", fmt.Sprintf("%d tasks: expected at most %d", len(g.Tasks), maxTasks), "write several groups")
	}
	seen, leader := map[string]int{}, ""
	for i, t := range g.Tasks {
		if t == nil {
			continue
		}
		at := fmt.Sprintf("%s.Tasks[%d]", path, i)
		if first, twice := seen[t.Name]; twice && t.Name != "" {
			c.add(at+".Name", fmt.Sprintf("duplicate name %.60q: already used by Tasks[%d]", t.Name, first), "give each task of a group a unique name")
		}
		seen[t.Name] = i
		if t.Leader && leader != "" {
			c.add(at+".Leader", fmt.Sprintf("duplicate leader: %.60q is already the leader", leader), "remove one of the two")
		}
		if t.Leader {
			leader = t.Name
		}
	}
}

func (c *conversion) checkTask(path string, t *client.Task) {
	c.name(path+".Name", "a task's name", t.Name)
	if t.Driver == "" {
		c.add(path+".Driver", "driver is missing", "use exec (runs a program on the node) or sim (simulates a task)")
	} else if !slices.Contains(drivers, t.Driver) {
		remedy := "use exec (runs a program on the node) or sim (simulates a task)"
		if t.Driver == "raw_exec" {
			remedy = "use exec"
		}
		remedy = suggest.DidYouMean(t.Driver, drivers, remedy)
		c.add(path+".Driver", fmt.Sprintf("unknown driver %.60q", t.Driver), remedy)
	}
	if t.User != "" && !printable(t.User) {
		c.add(path+".User", fmt.Sprintf("invalid user name %.60q", t.User), "use a user that exists on the nodes")
	}
	c.checkKeys(path+".Env", t.Env)
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		if strings.ContainsAny(name, "=\x00") || strings.Contains(t.Env[name], "\x00") {
			c.add(keyPath(path+".Env", name), "the name contains =, or the name or value contains a NUL byte", "use letters, digits and _")
		}
	}
	if len(t.Meta) > 0 {
		c.add(path+".Meta", "meta is not supported on tasks", "set it on the group, or use env")
	}
	if t.KillTimeout != nil {
		c.checkDuration(path+".KillTimeout", *t.KillTimeout)
	}
	c.oneOf(path+".KillSignal", t.KillSignal, signals...)
	c.checkConfig(path+".Config", t)
}

// checkConfig validates the configuration of the driver. A job that every agent rejects
// must not be registered, because it could evict allocations before. If the driver is
// unknown, the configuration is validated for the driver that was probably meant, so that
// all problems are reported at once.
func (c *conversion) checkConfig(path string, t *client.Task) {
	driver := likelyDriver(t)
	if driver == "" {
		return
	}
	found := len(c.problems)
	known := taskconfig.Fields(driver)
	unknown := map[string]string{} // by the field that was probably meant
	for _, name := range slices.Sorted(maps.Keys(t.Config)) {
		if slices.Contains(known, name) {
			checkConfigField(c, keyPath(path, name), driver, name, t.Config[name])
			continue
		}
		unknown[suggest.Nearest(name, known)] = name
		c.add(keyPath(path, name), fmt.Sprintf("unknown field %.100q in the configuration of driver %s", name, driver), suggest.Field(name, known))
	}
	if _, given := t.Config["command"]; driver == "exec" && !given && unknown["command"] == "" {
		addBySyntax(c, path, "command is missing", bySyntax{
			api: `write {"command": "/bin/sleep", "args": ["60"]}`, hcl: `write config { command = "/bin/sleep" }`,
			yaml: "write config: {command: /bin/sleep}",
		})
	}
	if len(c.problems) > found {
		return
	}
	// The parsers of agents decide.
	if err := taskconfig.Check(driver, t.Config); err != nil {
		c.add(path, err.Error(), "`cede help jobs` describes the fields")
	}
}

// likelyDriver returns the driver of a task. If that is unknown, it returns the driver with a
// similar name or with one of the fields of the configuration, or "" if there is none.
func likelyDriver(t *client.Task) string {
	switch {
	case slices.Contains(drivers, t.Driver):
		return t.Driver
	case t.Driver == "raw_exec":
		return "exec"
	}
	if near := suggest.Nearest(t.Driver, drivers); near != "" {
		return near
	}
	for _, driver := range drivers {
		for name := range t.Config {
			if suggest.Nearest(name, taskconfig.Fields(driver)) != "" {
				return driver
			}
		}
	}
	return ""
}

// checkConfigField validates the type of one field of a configuration.
func checkConfigField(c *conversion, path, driver, name string, v any) {
	list, ok := v.([]any)
	if driver == "exec" && name == "args" && ok {
		for i, a := range list {
			if _, ok := a.(string); !ok {
				c.add(fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("expected a string, found %.40s", fmt.Sprint(a)), "put it in quotes")
			}
		}
		return
	}
	err := taskconfig.CheckField(driver, name, v)
	if err == nil {
		return
	}
	example := taskconfig.Example(driver, name)
	addBySyntax(c, path, err.Error(), bySyntax{
		api: fmt.Sprintf("write %q: %s", name, example), hcl: fmt.Sprintf("write %s = %s", name, example), yaml: fmt.Sprintf("write %s: %s", name, example),
	})
}

func (c *conversion) checkDuration(path string, d time.Duration) {
	c.report(path, fieldcheck.Duration(d, d.String()))
}

// checkAmount validates an amount of a resource and reports whether it is within
// bounds.
func (c *conversion) checkAmount(path, resource string, n int64) bool {
	p := fieldcheck.Amount(resource, n)
	if !p.Found() && !printable(resource) {
		p = fieldcheck.Problem{Text: fmt.Sprintf("invalid resource name %.60q: expected printable characters", resource), Remedy: "write a word such as cpu"}
	}
	c.report(path, p)
	return !p.Found()
}

func (c *conversion) checkDevice(path string, d *client.RequestedDevice) {
	if p := fieldcheck.DeviceID(d.Name); p.Found() || printable(d.Name) {
		c.report(path+".Name", p)
	} else {
		c.add(path+".Name", fmt.Sprintf("invalid device ID %.60q: expected printable characters", d.Name), "write it as gpu, nvidia/gpu or nvidia/gpu/a100")
	}
	if d.Count != nil {
		c.report(path+".Count", fieldcheck.DeviceCount(int64(min(*d.Count, fieldcheck.MaxDevices+1))))
	}
}

func (c *conversion) checkSpread(path string, s *client.Spread, m *model.Spread) {
	c.report(path+".Attribute", fieldcheck.SpreadAttribute(m.Attribute))
	c.report(path+".Weight", fieldcheck.SpreadWeight(m.Weight))
	switch {
	case s.MaxSkew > fieldcheck.MaxCount:
		c.add(path+".MaxSkew", fmt.Sprintf("%d is too large: expected at most %d", s.MaxSkew, fieldcheck.MaxCount), "check the number")
	case s.MaxSkew != 0:
		c.report(path+".MaxSkew", fieldcheck.MaxSkew(s.MaxSkew))
	}
	sum := 0
	for i, t := range s.SpreadTarget {
		if t == nil {
			continue
		}
		at := fmt.Sprintf("%s.SpreadTarget[%d]", path, i)
		if t.Value == "" {
			c.add(at+".Value", "value is missing", "name a value of the attribute")
		}
		if p := fieldcheck.TargetPercent(t.Percent); p.Found() {
			c.report(at+".Percent", p)
			continue
		}
		sum += t.Percent
	}
	c.report(path+".SpreadTarget", fieldcheck.TargetSum(sum))
}

// checkConstraint checks that a constraint has exactly the fields its operator needs.
// mayCount reports whether operators that count allocations are valid: they are in
// hard constraints of groups only.
func (c *conversion) checkConstraint(path string, m *model.Constraint, k *client.Constraint, mayCount bool) {
	if !m.Operator.Valid() || m.Operator.CountsAllocations() && !mayCount {
		c.badOperator(path+".Operand", k.Operand, mayCount)
		return
	}
	if m.Operator == model.OpDistinctHosts {
		c.report(path, fieldcheck.DistinctHosts(m.Attribute, m.Value))
		return
	}
	if m.Attribute == "" {
		c.add(path+".LTarget", "attribute is missing", "name an attribute, such as zone, ${attr.kernel.name} or ${node.class}")
	}
	if strings.Contains(k.RTarget, "${") {
		c.add(path+".RTarget", fmt.Sprintf("%.60q: interpolation is not supported in values", k.RTarget), "write the value itself")
		return
	}
	c.checkOperand(path+".RTarget", m)
}

func (c *conversion) badOperator(path, operand string, mayCount bool) {
	p := fieldcheck.Operator(operand, mayCount)
	switch { // operators of other schedulers
	case operand == "semver":
		p.Remedy = "use version"
	case strings.HasPrefix(operand, "set_contains"):
		p.Remedy = "use regexp, or an attribute for each value"
	}
	c.report(path, p)
}

// checkOperand checks the value against the operator. Every value is bounded, because a
// job may come from an untrusted source.
func (c *conversion) checkOperand(path string, m *model.Constraint) {
	remedy := "add it; to test whether the attribute exists use is_set or is_not_set"
	if m.Operator == model.OpIn || m.Operator == model.OpNotIn {
		remedy = `write a list: ["a", "b"]`
	}
	switch p := fieldcheck.Operand(m.Operator, m.Value, m.Values, remedy); {
	case p.Found():
		c.report(path, p)
	case len(m.Values) > maxEntries:
		c.add(path, fmt.Sprintf("%d values: expected at most %d", len(m.Values), maxEntries), "give the nodes a common attribute instead")
	case len(m.Value) > fieldcheck.MaxPattern:
		c.add(path, fmt.Sprintf("a value of %d bytes: expected at most %d", len(m.Value), fieldcheck.MaxPattern), "use a shorter one")
	}
}

// checkKeys validates the size of a mapping of strings and of its keys and values.
func (c *conversion) checkKeys(path string, m map[string]string) {
	if len(m) > maxEntries {
		c.add(path, fmt.Sprintf("%d entries: expected at most %d", len(m), maxEntries), "remove some entries")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		switch {
		case key == "":
			c.add(path, "a name is empty", "add a name")
		case len(key) > maxName || len(m[key]) > maxText:
			c.add(keyPath(path, key), fmt.Sprintf("name of %d bytes and value of %d bytes: expected at most %d and %d", len(key), len(m[key]), maxName, maxText), "use a shorter name or value")
		}
	}
}

// name validates a required name, which becomes part of IDs, URLs and file names.
func (c *conversion) name(path, what, s string) {
	if s == "" {
		c.add(path, what+" is missing", "add a name of letters, digits, ., _ and -")
		return
	}
	if len(s) > maxName {
		c.add(path, fmt.Sprintf("%s of %d bytes: expected at most %d", what, len(s), maxName), "use a shorter name")
		return
	}
	bad := func(r rune) bool { return !plainRune(r) && r != '.' }
	if strings.ContainsFunc(s, bad) || strings.Trim(s, ".") == "" {
		remedy := "use other characters"
		if better := strings.Trim(strings.Map(func(r rune) rune {
			if bad(r) {
				return '-'
			}
			return r
		}, s), "-."); better != "" {
			remedy = fmt.Sprintf("write %q", better)
		}
		c.add(path, fmt.Sprintf("invalid name %.60q: expected letters, digits, ., _ and -", s), remedy)
	}
}

// plainRune reports whether a character needs no escaping in names, paths and URLs.
func plainRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

func printable(s string) bool {
	return len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' })
}

// oneOf validates an enumeration. An empty value is valid.
func (c *conversion) oneOf(path, value string, allowed ...string) {
	if value == "" || slices.Contains(allowed, value) {
		return
	}
	c.add(path, fmt.Sprintf("expected %s, found %.60q", strings.Join(allowed, ", "), value), suggest.DidYouMean(value, allowed, "write one of them"))
}

package hosttest

import (
	"math/rand/v2"
	"strconv"

	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

// A Case is the input of all hooks.
type Case struct {
	Candidates *sdk.Candidates
	Options    *sdk.Options
}

// RandomCase returns a random case in which every column can occur.
func RandomCase(r *rand.Rand) Case {
	c := policytest.Random(r, policytest.Shape{
		Options: 1 + r.IntN(6), Rows: 1 + r.IntN(12), Devices: r.IntN(2) == 0, MustLeave: r.IntN(2) == 0,
		Small: r.IntN(2) == 0, Work: r.IntN(2) == 0, Budgets: r.IntN(2) == 0, Relocation: r.IntN(2) == 0,
		LookAhead: r.IntN(2) == 0,
	})
	c.Now = 1_700_000_000_000_000_000 + r.Int64N(1e15)
	p := &c.Preemptor
	p.Namespace, p.Job, p.Group = pick(r, "", "a", "b"), pick(r, "web", "batch"), "g"
	p.Priority, p.Delta, p.Ports = int32(20+r.IntN(80)), int32(r.IntN(20)), r.IntN(3)
	p.Waiting, p.Attempts = r.Int64N(1e13), int32(r.IntN(4))
	if r.IntN(2) == 0 {
		p.Labels = map[string]string{"tier": pick(r, "gold", "tin"), "team": pick(r, "x", "y", "")}
		p.Annotations = map[string]float64{"cost": r.Float64(), "worth": -1}
	}
	for i := range c.Options {
		for k := range c.Options[i].Rows {
			row := &c.Options[i].Rows[k]
			randomRow(r, row)
			if i > 0 && c.Options[i-1].Node == c.Options[i].Node { // the same rows with other device groups
				devices := row.Devices
				*row = c.Options[i-1].Rows[k]
				row.Devices = devices
			}
		}
	}
	if r.IntN(2) == 0 {
		c.Namespaces = append(c.Namespaces, policytest.Namespace{Name: "b", Weight: 1 + 3*r.Float64()})
	}
	q := Case{Candidates: c.Candidates()}
	fillCapacity(r, q.Candidates)
	victims := make([][]int, len(c.Options))
	for i := range victims {
		if n := len(c.Options[i].Rows); n > 0 {
			victims[i] = r.Perm(n)[:1+r.IntN(n)]
		}
	}
	q.Options = c.OptionsOf(victims)
	for i := range q.Candidates.Shared.Budgets.Strict {
		strict := uint8(r.IntN(2))
		q.Candidates.Shared.Budgets.Strict[i], q.Options.Shared.Budgets.Strict[i] = strict, strict
	}
	return q
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func randomRow(r *rand.Rand, row *policytest.Row) {
	row.Namespace, row.Group = pick(r, "", "a", "b"), pick(r, "", "g2")
	row.Job = pick(r, "", "", "job-"+strconv.Itoa(r.IntN(4)))
	row.Age = r.Int64N(2e13)
	row.LostWork = r.Int64N(row.Age + 1)
	if r.IntN(3) == 0 {
		row.Labels = map[string]string{"tier": pick(r, "gold", "tin")}
	}
	if r.IntN(4) == 0 {
		row.Annotations = map[string]float64{"cost": r.NormFloat64()}
	}
}

// fillCapacity fills the columns of options that do not follow from other columns.
func fillCapacity(r *rand.Rand, c *sdk.Candidates) {
	for _, table := range []*[][]float64{&c.Capacity, &c.Reserved, &c.Own, &c.Freed} {
		*table = make([][]float64, len(c.Dims))
		for d := range *table {
			for range c.Len() {
				(*table)[d] = append((*table)[d], float64(r.IntN(1<<22)))
			}
		}
	}
}

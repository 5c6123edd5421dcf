package guesttest

import (
	"context"
	"testing"

	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// BenchmarkDefault_Guest measures the call alone: no host, no fuel, no layout.
func BenchmarkDefault_Guest(b *testing.B) {
	c := policytest.ConstructionB(5000, true)
	in := c.Candidates()
	for _, language := range languages {
		b.Run(language, func(b *testing.B) {
			g := load(b, "default-"+language)
			var e abi.Encoder
			e.Candidates(abi.OpSelectVictims, in, rules.New().Info().Columns)
			g.ask(abi.OpSelectVictims, &e)
			call := g.module.ExportedFunction(abi.Exports[abi.OpSelectVictims])
			stack := make([]uint64, 2)
			rows := 0
			for b.Loop() {
				stack[0], stack[1] = uint64(g.at), uint64(e.Size())
				if err := call.CallWithStack(context.Background(), stack); err != nil || int32(stack[0]) != 0 {
					b.Fatal(err, int32(stack[0]))
				}
				rows += in.Rows.Len()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rows), "ns/row")
		})
	}
}

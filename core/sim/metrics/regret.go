package metrics

// regretSearch finds the fewest candidates that would have sufficed.
type regretSearch struct{}

func (s *regretSearch) fewest(c *Choice, chosen int) (int, bool) { return chosen, true }

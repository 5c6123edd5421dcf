package schema

// A Function is a function or operator of rules, for documents.
type Function struct {
	Form    string // such as min(x, y)
	Example string // an expression that uses it; tests compile it
	Doc     string
}

// Functions lists the functions and operators.
var Functions = []Function{
	{"&& || !", "victim.priority > 1 && !victim.mustLeave", "and, or, not: a side that decides alone does so even if the other has no value"},
	{"c ? x : y", "victim.mustLeave ? 0 : 1", "x if the condition holds, otherwise y; only the chosen side is computed"},
	{"== !=", "victim.namespace != preemptor.namespace", "equality of two values of one type; NaN is unequal to itself"},
	{"< <= > >=", "victim.age > duration('10m')", "order of int, double, duration and timestamp; a comparison with NaN has no value"},
	{"x in [a, b]", "victim.namespace in ['batch', 'test']", "whether x is one of constants; not for double"},
	{"+ - * / %", "victim.priority * 2 + 1", "arithmetic; of int exact, or without a value if it exceeds 64 bits or divides by zero; of double as in IEEE 754; % for int only"},
	{"duration * x", "victim.lostWork * victim.share", "a duration times an int or a double, towards zero; without a value if it exceeds 64 bits"},
	{"duration / duration", "victim.age / duration('1h')", "the quotient as a double"},
	{"timestamp - timestamp", "now - victim.start", "a duration; a duration can also be added to and subtracted from a timestamp"},
	{"duration('1h30m')", "duration('1h30m')", "a constant, with the units h, m, s, ms, us and ns"},
	{"timestamp('2026-01-02T15:04:05Z')", "timestamp('2026-01-02T15:04:05Z')", "a constant between 1678 and 2262"},
	{"d.getHours()", "victim.age.getHours()", "whole hours of a duration, towards zero; also `getMinutes`, `getSeconds` and `getMilliseconds`"},
	{"double(x)", "double(victim.priority)", "an int as a double"},
	{"int(x)", "int(victim.share * 100.0)", "a double as an int, towards zero; without a value if it exceeds 64 bits"},
	{"min(x, y) max(x, y)", "max(victim.share, 0.01)", "the lower and the higher of two values of one type; of doubles NaN if one is NaN"},
	{"abs(x)", "abs(victim.priority)", "the absolute value of an int, double or duration"},
	{"floor(x) ceil(x)", "floor(victim.share * 10.0)", "a double rounded down or up, as a double"},
	{"sqrt(x) exp(x) log(x) pow(x, y)", "exp(-victim.share) + log(2.0)", "with the same bits on every machine, as in `sdk/fmath`"},
	{"has(m.key)", "has(victim.labels.tier)", "whether a label or annotation exists; also `'key' in m`"},
	{"s.startsWith(t)", "victim.job.startsWith('nightly-')", "also `endsWith` and `contains`"},
}

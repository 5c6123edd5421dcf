package meter

// contents is a module as far as metering and its callers need it decoded.
// The functions themselves stay bytes until they are rewritten.
type contents struct {
	module   []byte
	options  Options
	sections []section

	types     []Signature
	imports   []Import
	functions []uint32 // type indexes of all functions, imports first
	tables    []table  // those that the module defines
	memory    *Limits  // that the module defines
	exports   []Export
	start     bool

	importedFunctions, importedTables, importedMemories, importedGlobals int
	definedGlobals, codes                                                int
}

// table is a table that the module defines.
type table struct {
	element ValueType
	Limits
}

// decode reads everything but the instructions of functions, and believes no
// length: what it accepts, an engine can decode without large allocations.
func decode(module []byte, o Options) (*contents, *Error) {
	sections, err := split(module)
	if err != nil {
		return nil, err
	}
	c := &contents{module: module, options: o, sections: sections}
	for _, s := range sections {
		r := c.reader(s)
		if read := sectionReaders[s.id]; read != nil {
			read(c, &r)
			r.finish(sectionNames[s.id] + " section")
		}
		if r.failed() {
			return nil, r.err
		}
	}
	if defined := len(c.functions) - c.importedFunctions; defined != c.codes {
		return nil, &Error{
			Kind: ErrMalformed, Offset: len(module), Function: -1,
			What: "the numbers of functions and of function bodies differ",
		}
	}
	return c, nil
}

// reader reads the section from its beginning.
func (c *contents) reader(s section) reader {
	return reader{buf: c.module, pos: s.start, end: s.end, section: sectionNames[s.id], function: -1}
}

// sectionReaders decode the sections. The code section has its own walk, which
// knows everything else.
var sectionReaders = [...]func(*contents, *reader){
	secType:      (*contents).readTypes,
	secImport:    (*contents).readImports,
	secFunction:  (*contents).readFunctions,
	secTable:     (*contents).readTables,
	secMemory:    (*contents).readMemories,
	secGlobal:    (*contents).readGlobals,
	secExport:    (*contents).readExports,
	secStart:     (*contents).readStart,
	secElement:   (*contents).readElements,
	secDataCount: (*contents).readDataCount,
	secCode:      (*contents).readCodeCount,
	secData:      (*contents).readData,
}

// describe is what a loader learns of the module.
func (c *contents) describe(code []byte) *Module {
	m := &Module{
		Code: code, Imports: c.imports, Exports: c.exports, Memory: c.memory,
		Start: c.start, Functions: c.codes,
	}
	for _, t := range c.tables {
		m.Tables = append(m.Tables, t.Limits)
	}
	return m
}

// countOf is how many of the kind there are, imports counted.
func (c *contents) countOf(k Kind) int {
	switch k {
	case KindFunction:
		return len(c.functions)
	case KindTable:
		return c.importedTables + len(c.tables)
	case KindMemory:
		if c.memory != nil {
			return c.importedMemories + 1
		}
		return c.importedMemories
	default:
		return c.globals()
	}
}

// globals is how many globals the module has before metering, and so the index
// of the fuel.
func (c *contents) globals() int { return c.importedGlobals + c.definedGlobals }

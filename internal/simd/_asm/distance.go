package main

// distance returns the kernel for up to additiveRows rows and the given number of vectors of
// columns. Four by four are 16 sums. A step takes three instructions for each sum, or two without
// factors. All of them use the units that multiply, and are enough to keep these units busy.
func distance(vectors int) func(p program) {
	return func(p program) {
		args := newArguments(p, distanceArg)
		b, bRow, w, depth := args.field("b"), args.field("bRow"), args.field("w"), args.field("depth")
		args.eachHeight(additiveRows, func(rows int) {
			sums := zeros(p, rows, vectors)
			a := p.rows(args.field("a"), args.field("aRow"), rows)
			steps := func(factors bool) {
				p.repeat(depth, func() {
					var factor vec
					if factors {
						factor = p.load(w, 0)
						p.move(4, w)
					}
					group := p.by(vectors, vectors, 1)
					for start := 0; start < vectors; start += group {
						p.scope(func() {
							row := make([]vec, group)
							for v := range row {
								row[v] = p.read(b, start+v, nil)
							}
							for r := range rows {
								p.scope(func() {
									x, d := p.load(a[r], 0), p.vec()
									for v := range row {
										p.sub(d, row[v], x)
										if factors {
											p.mul(d, d, factor)
										}
										// The difference is squared, not expanded to products: that would
										// cancel for vectors that are close together.
										p.subProduct(sums[r][start+v], d, d)
									}
								})
							}
						})
					}
					p.moveRows(4, a)
					p.advance(b, bRow)
				})
			}
			p.ifElse(notZero(w), func() { steps(true) }, func() { steps(false) })
			args.storeTile(sums)
			p.end()
		})
	}
}

// distanceGrad writes the kernel for the gradients of up to additiveRows queries and any number of
// keys, for one vector of features. It has the arguments of additiveTileGrad, but with the queries
// and keys themselves.
func distanceGrad(p program) {
	args := newArguments(p, gradArg)
	row, dw := args.field("row"), args.field("dw")
	args.eachHeight(additiveRows, func(rows int) {
		dqSums, q := readRows(p, args.field("dq"), row, rows), operandRows(p, args.field("e"), row, rows)
		each := func(dwSums []vec) {
			args.eachKey(rows, func(r int, k, dk, ds vec) {
				d := p.vec()
				p.sub(d, k, q[r])
				p.addProduct(dqSums[r], d, ds)
				p.subProduct(dk, d, ds)
				if dwSums != nil {
					p.mul(d, d, d)
					p.addProduct(dwSums[r], d, ds)
				}
			})
			writeRows(p, dqSums, args.field("dq"), row)
			if dwSums != nil {
				writeRows(p, dwSums, args.field("dw"), row)
			}
		}
		p.ifElse(notZero(dw), func() { each(readRows(p, args.field("dw"), row, rows)) }, func() { each(nil) })
		p.end()
	})
}

// eachKey writes the loop over the keys of gradArgs. body is called for every row to add to the
// gradient dk of a key, given the element of ds.
func (a arguments) eachKey(rows int, body func(r int, key, dk, ds vec)) {
	p, row := a.p, a.field("row")
	keys, toDK, ds := a.field("f"), a.field("dk"), p.rows(a.field("ds"), a.field("dsRow"), rows)
	p.repeat(a.field("keys"), func() {
		key, dk := p.read(keys, 0, nil), p.read(toDK, 0, nil)
		for r := range rows {
			p.scope(func() { body(r, key, dk, p.load(ds[r], 0)) })
		}
		p.write(dk, toDK, 0, nil)
		p.advance(keys, row)
		p.advance(toDK, row)
		p.moveRows(4, ds)
	})
}

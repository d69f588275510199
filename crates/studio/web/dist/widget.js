// node_modules/preact/dist/preact.mjs
var e, t, n, r, i, a, o, s, c, l, u, d = Symbol.for("pv"), f = {}, p = [], m = /^m(i|n|o|s|text|space)$/, h = Array.isArray, g = p.slice, _ = Object.assign;
function v(e) {
	e && e.parentNode && e.remove();
}
function y(e, t, n) {
	var r, i, a, o = {}, s = arguments.length;
	for (a in t) a == "key" ? r = t[a] : a == "ref" && typeof e != "function" ? i = t[a] : o[a] = t[a];
	return s > 2 && (o.children = s > 3 ? g.call(arguments, 2) : n), b(e, o, r, i, null);
}
function b(n, r, i, a, o) {
	var s = {
		type: n,
		props: r,
		key: i,
		ref: a,
		__k: null,
		__: null,
		__b: 0,
		__e: null,
		__c: null,
		constructor: d,
		__v: o || ++t,
		__i: -1,
		__u: 0
	};
	return !o && e.vnode && e.vnode(s), s;
}
function x(e) {
	return e.children;
}
function S(e, t) {
	this.props = e, this.context = t, this.__g = 0;
}
function C(e, t) {
	if (t == null) return e.__ && C(e.__, e.__i + 1);
	for (var n; t < e.__k.length; t++) if ((n = e.__k[t]) && n.__e) return n.__e;
	return typeof e.type != "function" || e.props.__P ? null : C(e);
}
function w(t) {
	var n, r = t.__v, i = r.__e, a = [], o = [], s = t.__P;
	s && ((n = _({ constructor: d }, r)).__v = r.__v + 1, e.vnode && e.vnode(n), re(s, n, r, t.__n, s.namespaceURI, 32 & r.__u ? [i] : null, a, i || C(r), 32 & r.__u, o), n.__v = r.__v, n.__.__k[n.__i] = n, M(a, n, o), r.__ = r.__e = null, n.__e != i && T(n));
}
function T(e) {
	if ((e = e.__) && e.__c && !e.props.__P) return e.__e = null, e.__k.some(function(t) {
		return t && (e.__e = t.__e);
	}), T(e);
}
function E(t) {
	(8 & t.__g || (t.__g |= 8, r.push(t), a++)) && i == e.debounceRendering || ((i = e.debounceRendering) || queueMicrotask)(D);
}
function D() {
	try {
		for (var e, t = 1; r.length;) r.length > t && r.sort(o), e = r.shift(), t = r.length, 8 & e.__g && w(e);
	} finally {
		(a = r.length) && (i || queueMicrotask)(D);
	}
}
function O(e, t, n, r, i, a, o, s, c, l, u) {
	var d, m, h, g, _, v, y = r.__k || p, b = t.length;
	for (c = k(n, t, y, c, b), d = 0; d < b; d++) (h = n.__k[d]) != null && (m = ~h.__i && y[h.__i] || f, h.__i = d, v = re(e, h, m, i, a, o, s, c, l, u), g = h.__e, (m.ref != h.ref || 8 & m.__u) && (m.ref && P(m.ref, null, h, m), h.ref && u.push(h.ref, h.__c || g, h)), _ ||= g, 4 & h.__u ? (c = A(h, c, e, !m.__v), m.__e && (m.__e = null)) : typeof h.type == "function" && v !== void 0 ? c = v : g && (c = g.nextSibling), h.__u &= -21);
	return n.__e = _, c;
}
function k(e, t, n, r, i) {
	var a, o, s, c, l, u, f, p, m, g = n.length, _ = g, v = 0, y = 0, S = e.__k = Array(i);
	for (a = 0; a < i; a++) (o = t[a]) != null && typeof o != "boolean" && typeof o != "function" ? (typeof o != "object" || o.constructor === String ? o = S[a] = b(null, o) : h(o) ? o = S[a] = b(x, { children: o }) : o.constructor === d && o.__b ? o = S[a] = b(o.type, o.props, o.key, o.ref, o.__v) : S[a] = o, c = a + v, o.__ = e, o.__b = e.__b + 1, s = null, ~(l = o.__i = j(o, n, c, _)) && (_--, (s = n[l]) && (s.__u |= 2)), s && s.__v ? (o.__u |= 16, l == c - 1 ? v-- : l == c + 1 ? v++ : l != c && (l > c ? v-- : v++, y = 1)) : (~l || (i > g ? v-- : i < g && v++), typeof o.type != "function" && (o.__u |= 4))) : S[a] = null;
	if (y) {
		for (u = [], f = [], a = 0; a < i; a++) if ((o = S[a]) && 16 & o.__u) {
			for (v = 0, p = u.length; v < p;) u[m = v + p >> 1] < o.__i ? v = m + 1 : p = m;
			u[v] = o.__i, f[a] = v + 1;
		}
		for (v = u.length; a--;) f[a] && (f[a] == v ? v-- : S[a].__u |= 4);
	}
	if (_) for (a = 0; a < g; a++) !(s = n[a]) || 2 & s.__u || (s.__e == r && (r = C(s)), oe(s, s));
	return r;
}
function A(e, t, n, r) {
	var i, a, o, s;
	if (typeof e.type == "function") {
		if (e.props.__P) return t;
		if (i = e.__k) for (a = 0; a < i.length; a++) i[a] && (i[a].__ = e, t = A(i[a], t, n, !1));
		return t;
	}
	for (t && !t.parentNode && (t = C(e)) && !t.parentNode && (t = null), o = e.__e, s = t; s && s.nodeType == 8;) s = s.nextSibling;
	for (o != s && (!r && n.moveBefore && o.parentNode ? n.moveBefore(o, t) : n.insertBefore(o, t || null)), t = o; (t &&= t.nextSibling) && t.nodeType == 8 && !t.data.startsWith("$s"););
	return t;
}
function j(e, t, n, r) {
	var i, a = e.key, o = e.type, s = t[n], c = s && !(2 & s.__u);
	if (s === null && a == null || c && a == s.key && o == s.type) return n;
	if (r > +!!c) {
		for (i = n - 1; i >= 0; i--) if ((s = t[i]) && !(2 & s.__u) && a == s.key && o == s.type) return i;
		for (i = n + 1; i < t.length; i++) if ((s = t[i]) && !(2 & s.__u) && a == s.key && o == s.type) return i;
	}
	return -1;
}
function ee(e, t, n) {
	n ??= "", t[0] == "-" ? e.setProperty(t, n) : e[t] = n;
}
function te(e, t, n, r, i) {
	var a, o;
	if (t == "style") {
		if (typeof n == "string") e.style.cssText = n;
		else {
			if (typeof r == "string" && (e.style.cssText = r = ""), r) for (t in r) n && t in n || ee(e.style, t);
			if (n) for (t in n) r && n[t] == r[t] || ee(e.style, t, n[t]);
		}
	} else if (t[0] == "o" && t[1] == "n") typeof n != "function" && (n = null), typeof r != "function" && (r = null), (e.__e ||= {})[t] = n, n && r || (o = u[t] || (u[t] = ne(t)), (e.__a ||= {})[t] = l, a = t != (t = t.replace(c, "$1")), (t = t.slice(2))[0] < "a" && (t = t.toLowerCase()), n ? e.addEventListener(t, o, a) : e.removeEventListener(t, o, a));
	else {
		if (i == "http://www.w3.org/2000/svg") t = t.replace(/xlink(H|:h)/, "h").replace(/sName$/, "s");
		else if (t != "width" && t != "height" && t != "href" && t != "list" && t != "form" && t != "tabIndex" && t != "download" && t != "rowSpan" && t != "colSpan" && t != "role" && t != "popover" && t in e) try {
			e[t] = n ?? "";
			return;
		} catch {}
		if (typeof n == "function") return;
		n == null || !1 === n && t[4] != "-" ? e.removeAttribute(t) : e.setAttribute(t, t == "popover" && n == 1 ? "" : n);
	}
}
function ne(t) {
	return function(n) {
		var r = this.__e;
		if (r) {
			if (r = r[t], n[s] == null) n[s] = l++;
			else if (n[s] < this.__a[t]) return;
			return r(e.event ? e.event(n) : n);
		}
	};
}
function re(t, n, r, i, a, o, s, c, l, u) {
	var f, m, g, y, b, w, T, E, D, k, A, j, ee, te, ne, re, M, P, I = n.type;
	if (n.constructor !== d) return null;
	128 & r.__u && (l = 32 & r.__u, f = r.__c.__z) && (n.__u |= l, m = o = [], f.nodeType == 8 ? c = ie(f, o) : o.push(f), c = o[0] || c), (f = e.__b) && f(n);
	n: if (typeof I == "function") {
		g = s.length;
		try {
			if (E = n.props, D = (f = I.prototype) && f.render, k = (f = I.contextType) && i[f.__c], A = f ? k ? k.props.value : f.__ : i, (y = r.__c) ? (n.__c = y, 2 & y.__g && (y.__g |= 1)) : (D ? n.__c = y = new I(E, A) : (n.__c = y = new S(E, A), y.constructor = I, y.render = F), k && k.sub(y), y.state || (y.state = {}), y.__n = i, y.__g |= 8, y.__h = [], y.__k = []), D && (y.__s || (y.__s = y.state), I.getDerivedStateFromProps && (y.__s == y.state && (y.__s = _({}, y.__s)), _(y.__s, I.getDerivedStateFromProps(E, y.__s)))), b = y.props, w = y.state, y.__v = n, r.__c) {
				if (E !== b && D && !I.getDerivedStateFromProps && y.componentWillReceiveProps && y.componentWillReceiveProps(E, A), n.__v == r.__v && !(8 & y.__g) || !(4 & y.__g) && y.shouldComponentUpdate && !1 === y.shouldComponentUpdate(E, y.__s, A)) {
					n.__v != r.__v && (y.props = E, y.state = y.__s, y.__g &= -9), n.__e = r.__e, n.__k = r.__k, n.__k.some(function(e) {
						e && (e.__ = n);
					}), p.push.apply(y.__h, y.__k), y.__k = [], y.__h.length && s.push(y), c = C(r);
					break n;
				}
				y.componentWillUpdate && y.componentWillUpdate(E, y.__s, A), D && y.componentDidUpdate && y.__h.push(function() {
					y.componentDidUpdate(b, w, T);
				});
			} else D && !I.getDerivedStateFromProps && y.componentWillMount && y.componentWillMount(), D && y.componentDidMount && y.__h.push(y.componentDidMount);
			y.context = A, y.props = E, y.__P = t, y.__g &= -5, j = e.__r, ee = D ? 25 : 0;
			do
				y.__g &= -9, j && j(n), f = y.render(y.props, y.state = y.__s, y.context);
			while (8 & y.__g && ++ee < 25);
			D && (p.push.apply(y.__h, y.__k), y.__k = []), y.state = y.__s, y.getChildContext && (i = _({}, i, y.getChildContext())), D && r.__c && y.getSnapshotBeforeUpdate && (T = y.getSnapshotBeforeUpdate(b, w)), te = f && f.type === x && f.key == null ? f.props.children : f, E.__P && (f = c, a = (t = E.__P).namespaceURI, l = o = null, r.props && r.props.__P != t && (r.__k.some(function(e) {
				e && oe(e, e);
			}), r.__k = null), c = r.__k ? C(r, 0) : null), c = O(t, h(te) ? te : [te], n, r, i, a, o, s, c, l, u), E.__P && (n.__e = null, c = f), n.__u &= -161, m && m.some(v), y.__h.length && s.push(y), 1 & y.__g && (y.__g &= -4);
		} catch (t) {
			if (s.length = g, n.__v = null, l || o) {
				if (t && t.then) {
					if (n.__u |= 128 | l, o) {
						for (~(M = o.indexOf(c || void 0)) || (M = o.length); (P = o[M - 1]) && P.nodeType == 8;) M--;
						for (; M < o.length; M++) if (P = o[M]) {
							if (o[M] = null, ne) {
								if (P == re) break;
							} else {
								if (P.nodeType != 8) break;
								P.data.startsWith("$s") && (re = ie(ne = P));
							}
						}
					}
					if (!ne) {
						for (; c && c.nodeType == 8 && c.nextSibling;) c = c.nextSibling;
						ne = c;
					}
					(f = ie(ne = n.__c.__z || (n.__c.__z = ne))) ? (n.__e = ne, c = f) : n.__e = c, c &&= c.nextSibling;
				} else o && o.some(v);
			} else n.__e = r.__e;
			n.__k ||= r.__k || [], t && t.then || ae(n), e.__e(t, n, r);
		}
	} else c = n.__e = N(r.__e, n, r, i, a, o, s, l, u, t);
	return (f = e.diffed) && f(n), c;
}
function ie(e, t) {
	if (e && e.nodeType == 8 && e.data.startsWith("$s")) for (var n = 1; e = e.nextSibling;) {
		if (e.nodeType == 8) {
			if (e.data.startsWith("$s")) n++;
			else if (e.data.startsWith("/$s") && !--n) return e;
		}
		t && t.push(e);
	}
}
function ae(e) {
	e && (e.__c && (e.__c.__g |= 4), e.__k && e.__k.some(ae));
}
function M(t, n, r) {
	for (var i = 0; i < r.length;) P(r[i++], r[i++], r[i++]);
	e.__c && e.__c(n, t), t.some(function(n) {
		try {
			t = n.__h, n.__h = [], t.some(function(e) {
				e.call(n);
			});
		} catch (t) {
			e.__e(t, n.__v);
		}
	});
}
function N(t, n, r, i, a, o, s, c, l, u) {
	var d, p, _, y, b, x, S, w, T = r.props || f, E = n.props, D = n.type;
	if (D == "svg" ? a = "http://www.w3.org/2000/svg" : D == "math" ? a = "http://www.w3.org/1998/Math/MathML" : a ||= "http://www.w3.org/1999/xhtml", o) {
		for (d = 0; d < o.length; d++) if ((b = o[d]) && (D ? b.localName == D : b.nodeType == 3)) {
			t = b, o[d] = null;
			break;
		}
	}
	if (!t) {
		if (w = u.ownerDocument || document, !D) return w.createTextNode(E);
		t = w.createElementNS(a, D, E.is ? E : u), c &&= (e.__m && e.__m(n, o), !1), o = null;
	}
	if (D) {
		if (u = D == "template" && t.content || t, o = D == "textarea" && E.defaultValue != null ? null : o && g.call(u.childNodes), !c && o) for (T = {}, d = 0; d < t.attributes.length; d++) T[(b = t.attributes[d]).name] = b.value;
		for (d in T) b = T[d], d == "dangerouslySetInnerHTML" ? _ = b : d == "children" || d in E || d == "value" && "defaultValue" in E || d == "checked" && "defaultChecked" in E || te(t, d, null, b, a);
		for (d in E) b = E[d], d == "children" ? y = b : d == "dangerouslySetInnerHTML" ? p = b : d == "value" ? x = b : d == "checked" ? S = b : c && typeof b != "function" || T[d] === b || te(t, d, b, T[d], a);
		p ? (c || _ && (p.__html == _.__html || p.__html == t.innerHTML) || (t.innerHTML = p.__html), n.__k = []) : (_ && (t.textContent = ""), (D == "foreignObject" || a == "http://www.w3.org/1998/Math/MathML" && m.test(D)) && (a = "http://www.w3.org/1999/xhtml"), O(u, h(y) ? y : [y], n, r, i, a, o, s, o ? o[0] : r.__k && C(r, 0), c, l), o && o.some(v)), c && D != "textarea" || (d = "value", D == "progress" && x == null ? t.removeAttribute(d) : x == null || x === t[d] && (D != "progress" || x) || te(t, d, x, T[d], a), d = "checked", S != null && S != t[d] && te(t, d, S, T[d], a));
	} else T === E || c && t.data == E || (t.data = E);
	return t;
}
function P(t, n, r, i) {
	try {
		typeof t == "function" ? n ? n.__x = t(n) || 1 : (i &&= i.__c || i.__e) && (n = i.__x) && (i.__x = null, typeof n == "function" ? n() : t(null)) : t.current = n;
	} catch (t) {
		e.__e(t, r);
	}
}
function oe(t, n, r) {
	var i, a, o, s;
	if (e.unmount && e.unmount(t), !(i = t.ref) || i.current && i.current != t.__e || P(i, null, n, t), i = t.__c) {
		if (i.componentWillUnmount) try {
			i.componentWillUnmount();
		} catch (t) {
			e.__e(t, n);
		}
		i.__P = i.__n = null;
	}
	if (i = t.__k) for (s = 0; s < i.length; s++) i[s] && oe(i[s], n, typeof t.type != "function" || r && !t.props.__P);
	!r && (i = t.__c) && (i = i.__z) && (a = ie(i, o = [])) && (i == t.__e && o.some(v), v(a), v(i)), r || v(t.__e), t.__e = t.__c = t.__ = null;
}
function F(e, t, n) {
	return this.constructor(e, n);
}
function I(t, n) {
	var r, i, a, o;
	e.__ && e.__(t, n), n.nodeType == 9 && (n = n.documentElement), i = (r = t && 32 & t.__u) ? null : n.__k, n.__k = b(x, { children: [t] }), a = [], o = [], re(n, n.__k, i || f, f, n.namespaceURI, i ? null : n.firstChild ? g.call(n.childNodes) : null, a, i ? i.__e : n.firstChild, r, o), M(a, n.__k, o), n.__k.props.children = null;
}
e = { __e: function(e, t, n, r) {
	for (var i, o, s; t = t.__;) if ((i = t.__c) && !(1 & i.__g)) {
		i.__g |= 4;
		try {
			if ((s = (o = i.constructor) && o.getDerivedStateFromError) && i.setState(o.getDerivedStateFromError(e)), i.componentDidCatch && (i.componentDidCatch(e, r || {}), s = 1), s && 8 & i.__g) return void (i.__g |= 2);
		} catch (t) {
			e = t;
		}
	}
	throw a = 0, e;
} }, t = 0, n = function(e) {
	return e != null && e.constructor === d;
}, S.prototype.setState = function(e, t) {
	var n = this.__s;
	n && n != this.state || (n = this.__s = _({}, this.state)), typeof e == "function" && (e = e(_({}, n), this.props)), e && (_(n, e), this.__v && (t && this.__k.push(t), E(this)));
}, S.prototype.forceUpdate = function(e) {
	this.__v && (this.__g |= 4, e && this.__h.push(e), E(this));
}, S.prototype.render = x, r = [], a = 0, o = function(e, t) {
	return e.__v.__b - t.__v.__b;
}, s = Symbol(), c = /(PointerCapture)$|Capture$/i, l = 0, u = {};
// node_modules/preact/hooks/dist/hooks.mjs
var se, L, ce, le, ue = Object.is, de = 0, fe = [], pe = [], R = e, me = R.__b, he = R.__r, ge = R.diffed, _e = R.__c, ve = R.unmount, ye = R.__;
function be(e, t) {
	R.__h && R.__h(L, e, de || t), de = 0;
	var n = L.__H || (L.__H = {
		__: [],
		__h: []
	});
	return e >= n.__.length && n.__.push({}), n.__[e];
}
function z(e) {
	return de = 1, B(Ne, e);
}
function B(e, t, n) {
	var r = be(se++, 2);
	if (r.t = e, !r.__c && (r.__ = [n ? n(t) : Ne(void 0, t), function(e) {
		var t = (r.__N || r.__)[0], n = r.t(t, e);
		ue(t, n) || (r.__N = [n, r.__[1]], r.__c.setState({}));
	}], r.__c = L, !L.__f)) {
		L.__f = !0;
		var i = L.shouldComponentUpdate;
		L.shouldComponentUpdate = function(e, t, n) {
			var r = this.__H;
			if (!r) return !0;
			var a = !1, o = this.props != e;
			if (r.__.some(function(e) {
				e.__N && (a = !0, ue(e.__[0], e.__N[0]) || (o = !0));
			}), i) {
				var s = i.call(this, e, t, n);
				return a ? s || o : s;
			}
			return !a || o;
		};
	}
	return r.__;
}
function xe(e, t) {
	var n = be(se++, 3);
	!R.__s && Me(n.__H, t) && (n.__P = !0, n.__ = e, n.u = t, L.__H.__h.push(n));
}
function Se(e, t) {
	var n = be(se++, 4);
	!R.__s && Me(n.__H, t) && (n.__P = !1, n.__ = e, n.u = t, L.__h.push(n));
}
function Ce(e) {
	return de = 5, we(function() {
		return { current: e };
	}, []);
}
function we(e, t) {
	var n = be(se++, 7);
	return Me(n.__H, t) && (n.__ = e(), n.__H = t), n.__;
}
function Te() {
	var e = be(se++, 11);
	if (!e.__) {
		for (var t = L.__v; !t.__m && t.__;) t = t.__;
		var n = t.__m || (t.__m = [0, 0]);
		e.__ = "P" + n[0] + "-" + n[1]++;
	}
	return e.__;
}
function Ee() {
	var e;
	do {
		for (; e = pe.shift();) try {
			Ae(e);
		} catch (t) {
			R.__e(t, { __: (e = e.__P) && e.__v });
		}
		for (; e = fe.shift();) {
			var t = e.__H;
			if (e.__P && t) try {
				t.__h.some(Ae), t.__h.some(je), t.__h = [];
			} catch (n) {
				t.__h = [], R.__e(n, e.__v);
			}
		}
	} while (pe.length);
}
R.__b = function(e) {
	L = null, me && me(e);
}, R.__ = function(e, t) {
	e && t.__k && t.__k.__m && (e.__m = t.__k.__m), ye && ye(e, t);
}, R.__r = function(e) {
	he && he(e), se = 0;
	var t = (L = e.__c).__H;
	t && (ce == L ? L.__h = [] : (t.__h.some(Ae), t.__h.some(je), se = 0), t.__h = [], t.__.some(function(e) {
		e.__N && (e.__ = e.__N), e.u = e.__N = void 0;
	})), ce = L;
}, R.diffed = function(e) {
	ge && ge(e);
	var t = e.__c;
	t && t.__H && (t.__H.__h.length && ke(fe.push(t)), t.__H.__.some(function(e) {
		e.u && (e.__H = e.u);
	})), ce = L = null;
}, R.__c = function(e, t) {
	t.some(function(e) {
		try {
			e.__h.some(Ae), e.__h = e.__h.filter(function(e) {
				return !e.__ || je(e);
			});
		} catch (t) {
			e.__h = [function() {
				throw t;
			}];
		}
	}), _e && _e(e, t);
}, R.unmount = function(e) {
	ve && ve(e);
	var t, n, r = e.__c;
	r && r.__H && (r.__H.__.some(function(r) {
		try {
			if (r.__P && r.__c) {
				if (n === void 0) {
					for (n = e.__; n && (!n.__c || !n.__c.__P);) n = n.__;
					n &&= n.__c;
				}
				r.__P = n, ke(pe.push(r));
			} else Ae(r);
		} catch (e) {
			t = e;
		}
	}), r.__H = void 0, t && R.__e(t, r.__v));
};
var De = typeof requestAnimationFrame == "function";
function Oe(e) {
	var t, n = function() {
		clearTimeout(r), De && cancelAnimationFrame(t), setTimeout(e);
	}, r = setTimeout(n, 35);
	De && (t = requestAnimationFrame(n));
}
function ke(e) {
	e != 1 && le == R.requestAnimationFrame || ((le = R.requestAnimationFrame) || Oe)(Ee);
}
function Ae(e) {
	var t = L, n = e.__c;
	typeof n == "function" && (e.__c = void 0, n()), L = t;
}
function je(e) {
	var t = L;
	e.__c = e.__(), L = t;
}
function Me(e, t) {
	return !e || e.length != t.length || t.some(function(t, n) {
		return !ue(t, e[n]);
	});
}
function Ne(e, t) {
	return typeof t == "function" ? t(e) : t;
}
// node_modules/@preact/signals-core/dist/signals-core.module.js
var Pe = Symbol.for("preact-signals");
function Fe() {
	if (Be > 1) Be--;
	else {
		var e, t = !1;
		for ((function() {
			var e = We;
			for (We = void 0; e !== void 0;) {
				var t = e.S;
				if (t.v === e.v) for (var n = t.t; n !== void 0; n = n.x) n.i === e.i && (n.i = t.i);
				e = e.o;
			}
		})(); ze !== void 0;) {
			var n = ze;
			for (ze = void 0, Ve++; n !== void 0;) {
				var r = n.u;
				if (n.u = void 0, n.f &= -3, !(8 & n.f) && qe(n)) try {
					n.c();
				} catch (n) {
					t ||= (e = n, !0);
				}
				n = r;
			}
		}
		if (Ve = 0, Be--, t) throw e;
	}
}
function Ie(e) {
	if (Be > 0) return e();
	Ue = ++He, Be++;
	try {
		return e();
	} finally {
		Fe();
	}
}
var Le, V = void 0;
function Re(e) {
	var t = V, n = Le;
	V = void 0, Le = void 0;
	try {
		return e();
	} finally {
		V = t, Le = n;
	}
}
var ze = void 0, Be = 0, Ve = 0, He = 0, Ue = 0, We = void 0, Ge = 0;
function Ke(e) {
	if (V !== void 0) {
		var t = e.n;
		if (t === void 0 || t.t !== V) return t = {
			i: 0,
			S: e,
			p: V.s,
			n: void 0,
			t: V,
			e: void 0,
			x: void 0,
			r: t
		}, V.s !== void 0 && (V.s.n = t), V.s = t, e.n = t, 32 & V.f && e.S(t), t;
		if (t.i === -1) return t.i = 0, t.n !== void 0 && (t.n.p = t.p, t.p !== void 0 && (t.p.n = t.n), t.p = V.s, t.n = void 0, V.s.n = t, V.s = t), t;
	}
}
function H(e, t) {
	this.v = e, this.i = 0, this.n = void 0, this.t = void 0, this.l = 0, this.W = t?.watched, this.Z = t?.unwatched, this.name = t?.name;
}
H.prototype.brand = Pe, H.prototype.h = function() {
	return !0;
}, H.prototype.S = function(e) {
	var t = this, n = this.t;
	n !== e && e.e === void 0 && (e.x = n, this.t = e, n === void 0 ? Re(function() {
		var e;
		(e = t.W) == null || e.call(t);
	}) : n.e = e);
}, H.prototype.U = function(e) {
	var t = this;
	if (this.t !== void 0) {
		var n = e.e, r = e.x;
		n !== void 0 && (n.x = r, e.e = void 0), r !== void 0 && (r.e = n, e.x = void 0), e === this.t && (this.t = r, r === void 0 && Re(function() {
			var e;
			(e = t.Z) == null || e.call(t);
		}));
	}
}, H.prototype.subscribe = function(e) {
	var t = this;
	return nt(function() {
		var n = t.value;
		Re(function() {
			return e(n);
		});
	}, { name: "sub" });
}, H.prototype.valueOf = function() {
	return this.value;
}, H.prototype.toString = function() {
	return this.value + "";
}, H.prototype.toJSON = function() {
	return this.value;
}, H.prototype.peek = function() {
	var e = this;
	return Re(function() {
		return e.value;
	});
}, Object.defineProperty(H.prototype, "value", {
	get: function() {
		var e = Ke(this);
		return e !== void 0 && (e.i = this.i), this.v;
	},
	set: function(e) {
		if (e !== this.v) {
			if (Ve > 100) throw Error("Cycle detected");
			(function(e) {
				Be !== 0 && Ve === 0 && e.l !== Ue && (e.l = Ue, We = {
					S: e,
					v: e.v,
					i: e.i,
					o: We
				});
			})(this), this.v = e, this.i++, Ge++, Be++;
			try {
				for (var t = this.t; t !== void 0; t = t.x) t.t.N();
			} finally {
				Fe();
			}
		}
	}
});
function U(e, t) {
	return new H(e, t);
}
function qe(e) {
	for (var t = e.s; t !== void 0; t = t.n) if (t.S.i !== t.i || !t.S.h() || t.S.i !== t.i) return !0;
	return !1;
}
function Je(e) {
	for (var t = e.s; t !== void 0; t = t.n) {
		var n = t.S.n;
		if (n !== void 0 && (t.r = n), t.S.n = t, t.i = -1, t.n === void 0) {
			e.s = t;
			break;
		}
	}
}
function Ye(e) {
	for (var t = e.s, n = void 0; t !== void 0;) {
		var r = t.p;
		t.i === -1 ? (t.S.U(t), r !== void 0 && (r.n = t.n), t.n !== void 0 && (t.n.p = r)) : n = t, t.S.n = t.r, t.r !== void 0 && (t.r = void 0), t = r;
	}
	e.s = n;
}
function Xe(e, t) {
	H.call(this, void 0, t), this.x = e, this.s = void 0, this.g = Ge - 1, this.f = 4;
}
Xe.prototype = new H(), Xe.prototype.h = function() {
	if (this.f &= -3, 1 & this.f) return !1;
	if ((36 & this.f) == 32 || (this.f &= -5, this.g === Ge)) return !0;
	if (this.g = Ge, this.f |= 1, this.i > 0 && !qe(this)) return this.f &= -2, !0;
	var e = V;
	try {
		Je(this), V = this;
		var t = this.x();
		(16 & this.f || this.v !== t || this.i === 0) && (this.v = t, this.f &= -17, this.i++);
	} catch (e) {
		this.v = e, this.f |= 16, this.i++;
	}
	return V = e, Ye(this), this.f &= -2, !0;
}, Xe.prototype.S = function(e) {
	if (this.t === void 0) {
		this.f |= 36;
		for (var t = this.s; t !== void 0; t = t.n) t.S.S(t);
	}
	H.prototype.S.call(this, e);
}, Xe.prototype.U = function(e) {
	if (this.t !== void 0 && (H.prototype.U.call(this, e), this.t === void 0)) {
		this.f &= -33;
		for (var t = this.s; t !== void 0; t = t.n) t.S.U(t);
	}
}, Xe.prototype.N = function() {
	if (!(2 & this.f)) {
		this.f |= 6;
		for (var e = this.t; e !== void 0; e = e.x) e.t.N();
	}
}, Object.defineProperty(Xe.prototype, "value", { get: function() {
	if (1 & this.f) throw Error("Cycle detected");
	var e = Ke(this);
	if (this.h(), e !== void 0 && (e.i = this.i), 16 & this.f) throw this.v;
	return this.v;
} });
function Ze(e, t) {
	return new Xe(e, t);
}
function Qe(e) {
	var t = e.j;
	if (e.j = void 0, typeof t == "function") {
		Be++;
		var n = V;
		V = void 0;
		try {
			t();
		} catch (t) {
			throw e.f &= -2, e.f |= 8, $e(e), t;
		} finally {
			V = n, Fe();
		}
	}
}
function $e(e) {
	for (var t = e.s; t !== void 0; t = t.n) t.S.U(t);
	e.x = void 0, e.s = void 0, Qe(e);
}
function et(e) {
	if (V !== this) throw Error("Out-of-order effect");
	Ye(this), V = e, this.f &= -2;
	try {
		8 & this.f && $e(this);
	} finally {
		Fe();
	}
}
function tt(e, t) {
	this.x = e, this.j = void 0, this.s = void 0, this.u = void 0, this.f = 32, this.name = t?.name, Le && Le.push(this);
}
tt.prototype.c = function() {
	var e = this.S();
	try {
		if (8 & this.f || this.x === void 0) return;
		var t = this.x();
		typeof t == "function" && (this.j = t);
	} finally {
		e();
	}
}, tt.prototype.S = function() {
	if (1 & this.f) throw Error("Cycle detected");
	this.f |= 1, this.f &= -9, Qe(this), Je(this), Be++;
	var e = V;
	return V = this, et.bind(this, e);
}, tt.prototype.N = function() {
	2 & this.f || (this.f |= 2, this.u = ze, ze = this);
}, tt.prototype.d = function() {
	this.f |= 8, 1 & this.f || $e(this);
}, tt.prototype.dispose = function() {
	this.d();
};
function nt(e, t) {
	var n = new tt(e, t);
	try {
		n.c();
	} catch (e) {
		throw n.d(), e;
	}
	var r = n.d.bind(n);
	return r[Symbol.dispose] = r, r;
}
// node_modules/@preact/signals/dist/signals.module.js
var rt, W, it = typeof window < "u" && !!window.__PREACT_SIGNALS_DEVTOOLS__, at = [];
nt(function() {
	rt = this.N;
})();
function ot(t, n) {
	e[t] = n.bind(null, e[t] || function() {});
}
function st(e) {
	if (W) {
		var t = W;
		W = void 0, t();
	}
	W = e && e.S();
}
function ct(e) {
	var t = this, r = e.data, i = ut(r);
	i.name = "ReactiveDom", i.value = r;
	var a = we(function() {
		for (var e = t, r = t.__v; r = r.__;) if (r.__c) {
			r.__c.__$f |= 4;
			break;
		}
		var a = Ze(function() {
			var e = i.value.value;
			return e === 0 ? 0 : !0 === e ? "" : e || "";
		}), o = Ze(function() {
			return !Array.isArray(a.value) && !n(a.value);
		}), s = nt(function() {
			if (this.N = pt, o.value) {
				var t = a.value;
				e.__v && e.__v.__e && e.__v.__e.nodeType === 3 && (e.__v.__e.data = t);
			}
		}), c = t.__$u.d;
		return t.__$u.d = function() {
			s(), c.call(this);
		}, [o, a];
	}, []), o = a[0], s = a[1];
	return o.value ? s.peek() : s.value;
}
ct.displayName = "ReactiveTextNode", Object.defineProperties(H.prototype, {
	constructor: {
		configurable: !0,
		value: y(x, null).constructor
	},
	type: {
		configurable: !0,
		value: ct
	},
	props: {
		configurable: !0,
		get: function() {
			var e = this;
			return { data: { get value() {
				return e.value;
			} } };
		}
	},
	__b: {
		configurable: !0,
		value: 1
	}
}), ot("__b", function(e, t) {
	if (st(), typeof t.type == "string") {
		var n, r = t.props;
		for (var i in r) if (i !== "children") {
			var a = r[i];
			a instanceof H && (n || (t.__np = n = {}), n[i] = a, r[i] = a.peek());
		}
	}
	e(t);
}), ot("__r", function(e, t) {
	if (e(t), t.type !== x) {
		st();
		var n, r = t.__c;
		r && (r.__$f &= -2, (n = r.__$u) === void 0 && (r.__$u = n = function(e, t) {
			var n;
			return nt(function() {
				n = this;
			}, { name: t }), n.c = e, n;
		}(function(e) {
			return function() {
				var t;
				it && ((t = this.y) == null || t.call(this)), e.__$f |= 1, e.setState({});
			};
		}(r), typeof t.type == "function" ? t.type.displayName || t.type.name : ""))), st(n);
	}
}), ot("__e", function(e, t, n, r) {
	st(), e(t, n, r);
}), ot("diffed", function(e, t) {
	st();
	var n;
	if (typeof t.type == "string" && (n = t.__e)) {
		var r = t.__np, i = t.props, a = n.U;
		if (a) for (var o in a) {
			var s = a[o];
			s === void 0 || r && o in r || (s.d(), a[o] = void 0);
		}
		if (r) for (var c in a || (a = {}, n.U = a), r) {
			var l = a[c], u = r[c];
			l === void 0 ? (l = lt(n, c, u, i), a[c] = l) : l.o(u, i);
		}
	}
	e(t);
});
function lt(e, t, n, r) {
	var i = t in e && e.ownerSVGElement === void 0, a = U(n);
	return {
		o: function(e, t) {
			a.value = e, r = t;
		},
		d: nt(function() {
			this.N = pt;
			var n = a.value.value;
			r[t] !== n && (r[t] = n, i ? e[t] = n : n != null && (!1 !== n || t[4] === "-") ? e.setAttribute(t, n) : e.removeAttribute(t));
		})
	};
}
ot("unmount", function(e, t) {
	if (typeof t.type == "string") {
		var n = t.__e;
		if (n) {
			var r = n.U;
			if (r) for (var i in n.U = void 0, r) {
				var a = r[i];
				a && a.d();
			}
		}
		var o = t.__np;
		if (o) {
			var s = t.props;
			for (var c in o) s[c] = o[c];
		}
		t.__np = void 0;
	} else {
		var l = t.__c;
		if (l) {
			l.__$f |= 8;
			var u = l.__$u;
			u && (l.__$u = void 0, u.d());
		}
	}
	e(t);
}), ot("__h", function(e, t, n, r) {
	r < 3 && (t.__$f |= 2), e(t, n, r);
}), S.prototype.shouldComponentUpdate = function(e, t) {
	if (this.__R) return !0;
	var n = this.__$u, r = n && n.s !== void 0;
	for (var i in t) return !0;
	if (this.__f || typeof this.u == "boolean" && !0 === this.u) {
		var a = 2 & this.__$f;
		if (!(r || a || 4 & this.__$f) || 1 & this.__$f) return !0;
	} else if (!(r || 4 & this.__$f) || 3 & this.__$f) return !0;
	for (var o in e) if (o !== "__source" && e[o] !== this.props[o]) return !0;
	for (var s in this.props) if (!(s in e)) return !0;
	return !1;
};
function ut(e, t) {
	return we(function() {
		return U(e, t);
	}, []);
}
var dt = function(e) {
	queueMicrotask(function() {
		queueMicrotask(e);
	});
};
function ft() {
	Ie(function() {
		for (var e; e = at.shift();) rt.call(e);
	});
}
function pt() {
	at.push(this) === 1 && (e.requestAnimationFrame || dt)(ft);
}
var mt = 40, ht = 16, gt = 40, _t = 1, vt = 4294967295, yt = [
	"waiting",
	"filling",
	"running",
	"paused",
	"ended",
	"failed"
], bt = [
	"open",
	"close",
	"reclaim",
	"redirect"
], xt = class extends Error {}, St = class {
	lane;
	phase;
	whole;
	owners;
	units;
	events;
	samples;
	freeUnits;
	hostBytes;
	mediaBytes;
	filledBytes;
	nowNs;
	collections;
	requests;
	eventsLeftOut;
	pagesPerSecond;
	view;
	unitsAt;
	eventsAt;
	samplesAt;
	sampleBytes;
	constructor(e) {
		if (e.byteLength < 88) throw new xt(`a frame of ${e.byteLength} bytes is too short. Reload the page`);
		let t = new DataView(e), n = t.getUint8(0);
		if (n !== _t) throw new xt(`the server sends frames of version ${n}, but this page reads ${_t}. Reload the page`);
		let r = yt[t.getUint8(2)];
		if (r === void 0) throw new xt(`a frame has the unknown phase ${t.getUint8(2)}. Reload the page`);
		this.view = t, this.lane = t.getUint8(1), this.phase = r, this.whole = !!(t.getUint8(3) & 1), this.owners = t.getUint32(4, !0), this.units = t.getUint32(8, !0), this.events = t.getUint32(12, !0), this.samples = t.getUint32(16, !0), this.freeUnits = t.getUint32(20, !0), this.hostBytes = t.getFloat64(24, !0), this.mediaBytes = t.getFloat64(32, !0), this.filledBytes = t.getFloat64(40, !0), this.nowNs = t.getFloat64(48, !0), this.collections = t.getFloat64(56, !0), this.requests = t.getFloat64(64, !0), this.eventsLeftOut = t.getFloat64(72, !0), this.pagesPerSecond = t.getFloat64(80, !0), this.unitsAt = 88 + this.owners * mt, this.eventsAt = this.unitsAt + this.units * ht, this.samplesAt = this.eventsAt + this.events * gt, this.sampleBytes = 16 + 16 * this.owners;
		let i = this.samplesAt + this.samples * this.sampleBytes;
		if (i !== e.byteLength) throw new xt(`a frame of ${e.byteLength} bytes has a header for ${i} bytes. Reload the page`);
	}
	ownerHostBytes(e) {
		return this.view.getFloat64(88 + e * mt, !0);
	}
	ownerCopiedOut(e) {
		return this.view.getFloat64(88 + e * mt + 8, !0);
	}
	ownerReceived(e) {
		return this.view.getFloat64(88 + e * mt + 16, !0);
	}
	ownerValidPages(e) {
		return this.view.getFloat64(88 + e * mt + 24, !0);
	}
	ownerUnits(e) {
		return this.view.getUint32(88 + e * mt + 32, !0);
	}
	ownerReclaimed(e) {
		return this.view.getUint32(88 + e * mt + 36, !0);
	}
	unit(e) {
		return this.view.getUint32(this.unitsAt + e * ht, !0);
	}
	unitState(e) {
		return this.view.getUint8(this.unitsAt + e * ht + 4);
	}
	unitOwner(e) {
		return this.view.getUint8(this.unitsAt + e * ht + 5);
	}
	unitGroup(e) {
		return this.view.getUint16(this.unitsAt + e * ht + 6, !0);
	}
	unitValid(e) {
		return this.view.getUint32(this.unitsAt + e * ht + 8, !0);
	}
	unitWritten(e) {
		return this.view.getUint32(this.unitsAt + e * ht + 12, !0);
	}
	event(e) {
		let t = this.eventsAt + e * gt, n = this.view, r = bt[n.getUint8(t) - 1];
		if (r === void 0) throw new xt(`an event has the unknown kind ${n.getUint8(t)}. Reload the page`);
		let i = n.getUint32(t + 20, !0);
		return {
			kind: r,
			owner: n.getUint8(t + 1),
			why: n.getUint8(t + 2),
			destinationOwner: n.getUint8(t + 3),
			unit: n.getUint32(t + 4, !0),
			pages: n.getUint32(t + 8, !0),
			validPages: n.getUint32(t + 12, !0),
			copiedPages: n.getUint32(t + 16, !0),
			destination: i === vt ? null : i,
			hostBytes: n.getFloat64(t + 24, !0),
			nowNs: n.getFloat64(t + 32, !0)
		};
	}
	sampleHostBytes(e) {
		return this.view.getFloat64(this.samplesAt + e * this.sampleBytes, !0);
	}
	sampleMediaBytes(e) {
		return this.view.getFloat64(this.samplesAt + e * this.sampleBytes + 8, !0);
	}
	sampleOwnerHostBytes(e, t) {
		return this.view.getFloat64(this.samplesAt + e * this.sampleBytes + 16 + t * 16, !0);
	}
	sampleOwnerCopied(e, t) {
		return this.view.getFloat64(this.samplesAt + e * this.sampleBytes + 24 + t * 16, !0);
	}
}, Ct = {
	frames: 0,
	frameMs: 0,
	pictures: 0,
	pictureMs: 0,
	tiles: 0,
	renderer: "",
	frame(e) {
		this.frames += 1, this.frameMs += e;
	},
	picture(e, t) {
		this.pictures += 1, this.pictureMs += e, this.tiles += t;
	}
};
globalThis.warpMeter = Ct;
// src/map/palette.ts
var wt = [
	"#0072B2",
	"#D55E00",
	"#009E73",
	"#CC79A7",
	"#E69F00",
	"#56B4E9"
], Tt = [
	"#77AADD",
	"#EE8866",
	"#EEDD88",
	"#44BB99",
	"#FFAABB",
	"#99DDFF",
	"#BBCC33",
	"#AAAA00"
], Et = "#9AA0A6";
function Dt(e, t) {
	let n = t > wt.length ? Tt : wt;
	return e.map((e, t) => e.isolation === null ? Et : n[t % n.length]);
}
var Ot = {
	paper: "#FFFFFF",
	free: "#EDF0F2",
	ink: "#1F2328"
}, kt = {
	paper: "#0D1117",
	free: "#20262E",
	ink: "#E6EDF3"
};
function At(e) {
	let t = Number.parseInt(e.slice(1), 16);
	return [
		t >> 16 & 255,
		t >> 8 & 255,
		t & 255
	];
}
function jt(e, t, n) {
	return [
		e[0] + (t[0] - e[0]) * n,
		e[1] + (t[1] - e[1]) * n,
		e[2] + (t[2] - e[2]) * n
	];
}
function Mt([e, t, n]) {
	return `rgb(${Math.round(e)} ${Math.round(t)} ${Math.round(n)})`;
}
var Nt = .3, Pt = 4096, Ft = 8, It = class {
	buffer = /* @__PURE__ */ new ArrayBuffer(Pt * Ft);
	places = new Uint16Array(this.buffer);
	looks = new Uint8Array(this.buffer);
	count = 0;
	add(e, t, n) {
		let r = this.count;
		this.places[r * 4] = e, this.places[r * 4 + 1] = t, this.looks[r * 8 + 4] = n & 255, this.looks[r * 8 + 5] = n >>> 8 & 255, this.looks[r * 8 + 6] = n >>> 16 & 255, this.looks[r * 8 + 7] = n >>> 24, this.count = r + 1;
	}
	get isFull() {
		return this.count === Pt;
	}
};
function Lt(e, t, n, r) {
	let i = (e) => Math.min(255, Math.ceil(e * 255));
	return (e | t << 8 | i(n) << 16 | i(r) << 24) >>> 0;
}
// src/map/canvas2d.ts
var Rt = 6, zt = 64;
function Bt([e, t, n]) {
	return (255 << 24 | Math.round(n) << 16 | Math.round(t) << 8 | Math.round(e)) >>> 0;
}
var Vt = class {
	kind = "canvas";
	canvas;
	context;
	tile = 1;
	width = 1;
	image = null;
	pixels = /* @__PURE__ */ new Uint32Array();
	paper = 0;
	free = 0;
	ink = 0;
	solid = /* @__PURE__ */ new Uint32Array();
	dead = /* @__PURE__ */ new Uint32Array();
	shades = /* @__PURE__ */ new Uint32Array();
	top = 2 ** 53 - 1;
	bottom = 0;
	constructor(e) {
		let t = e.getContext("2d", { alpha: !1 });
		if (t === null) throw Error("This browser has no canvas to draw on.");
		this.canvas = e, this.context = t;
	}
	begin(e, t, n, r) {
		(this.image === null || this.canvas.width !== e || this.canvas.height !== t) && (this.canvas.width = e, this.canvas.height = t, this.image = this.context.createImageData(e, t), this.pixels = new Uint32Array(this.image.data.buffer)), this.width = e, this.tile = n, this.mixColours(r), this.pixels.fill(this.paper), this.context.putImageData(this.image, 0, 0);
	}
	mixColours({ ground: e, owners: t }) {
		let n = At(e.paper);
		this.paper = Bt(n), this.free = Bt(At(e.free)), this.ink = Bt(At(e.ink)), this.solid = Uint32Array.from(t, Bt), this.dead = Uint32Array.from(t, (e) => Bt(jt(n, e, Nt))), this.shades = new Uint32Array(t.length * 2 * zt), t.forEach((t, r) => {
			for (let i = 0; i < zt; i += 1) {
				let a = jt(jt(n, t, Nt), t, i / 63);
				this.shades[(r * 2 + 0) * zt + i] = Bt(a), this.shades[(r * 2 + 1) * zt + i] = Bt(jt(a, At(e.ink), .45));
			}
		});
	}
	fill(e, t, n, r, i) {
		for (let a = t; a < t + r; a += 1) {
			let t = a * this.width + e;
			for (let e = t; e < t + n; e += 1) this.pixels[e] = i;
		}
	}
	draw(e) {
		let { tile: t } = this;
		for (let n = 0; n < e.count; n += 1) {
			let r = e.places[n * 4], i = e.places[n * 4 + 1], a = e.looks[n * 8 + 4], o = e.looks[n * 8 + 5], s = e.looks[n * 8 + 6], c = e.looks[n * 8 + 7];
			i < this.top && (this.top = i), i + t > this.bottom && (this.bottom = i + t), o === 7 ? this.fill(r, i, t, t, this.paper) : o === 0 || a === 255 ? this.fill(r, i, t, t, this.free) : t < Rt ? this.fill(r, i, t, t, this.shades[(a * 2 + (o === 3 ? 0 : 1)) * zt + (s >> 2)]) : this.detail(r, i, a, o, s, c);
		}
	}
	show() {
		this.bottom > this.top && this.image !== null && this.context.putImageData(this.image, 0, 0, 0, this.top, this.width, this.bottom - this.top), this.top = 2 ** 53 - 1, this.bottom = 0;
	}
	detail(e, t, n, r, i, a) {
		let { tile: o, ink: s } = this, c = Math.round(i / 255 * o), l = Math.max(c, Math.round(a / 255 * o));
		if (this.fill(e, t, o, o - l, this.free), this.fill(e, t + o - l, o, l - c, this.dead[n]), this.fill(e, t + o - c, o, c, this.solid[n]), r === 3) return;
		let u = o >= 12 ? 2 : 1, d = r === 1 ? o : Math.max(2, Math.round(o / 3));
		for (let n of [0, o - u]) for (let r of [0, o - d]) this.fill(e + r, t + n, d, u, s), this.fill(e + n, t + r, u, d, s);
	}
	end() {
		this.image = null;
	}
};
function Ht(e) {
	return e >= 14 ? e - 2 : e >= 5 ? e - 1 : e;
}
function Ut(e, t, n, r, i, a) {
	for (let o = Math.floor(26 * a); o > 2; --o) if (Wt(e, t, o, r, i) <= n) return o;
	return 2;
}
function Wt(e, t, n, r, i) {
	let a = Math.max(1, Math.floor(t / n));
	return e.reduce((e, t) => e + r + (Math.ceil(t / a) + i) * n, 0);
}
var Gt = class {
	grouping;
	shape;
	regions = [];
	x;
	y;
	places = /* @__PURE__ */ new Int32Array();
	regionOf;
	firstPlace = [];
	placeOf;
	firstEmpty = [];
	keys;
	heading;
	units;
	constructor(e, t, n, r, i, a) {
		this.grouping = e, this.units = t, this.keys = n, this.heading = a;
		let o = Math.max(1, Math.floor(i.width / i.pitch));
		this.shape = {
			...i,
			size: Ht(i.pitch),
			columns: o,
			height: 0
		}, this.x = new Uint16Array(t), this.y = new Uint16Array(t), this.regionOf = new Int16Array(t), this.placeOf = new Int32Array(t), this.deal(r);
	}
	deal(e) {
		let t = new Map(this.keys.map((e, t) => [e, t])), n = Array(this.keys.length).fill(0);
		for (let r = 0; r < this.units; r += 1) {
			let i = t.get(e(r)) ?? this.keys.length - 1;
			this.regionOf[r] = i, n[i] = n[i] + 1;
		}
		let { columns: r, pitch: i } = this.shape, a = +(this.grouping === "handle"), o = 0, s = 0;
		this.regions = [], this.firstPlace = [], this.firstEmpty = [], this.keys.forEach((e, t) => {
			let c = Math.ceil(n[t] / r) + a;
			this.regions.push({
				key: e,
				top: o,
				tilesTop: o + this.heading,
				rows: c
			}), this.firstPlace.push(s), this.firstEmpty.push(s), s += c * r, o += this.heading + c * i;
		}), this.firstPlace.push(s), this.shape.height = o, this.places = new Int32Array(s).fill(-1);
		for (let e = 0; e < this.units; e += 1) this.put(e, this.regionOf[e]);
	}
	put(e, t) {
		let n = this.firstPlace[t + 1], r = this.firstEmpty[t];
		for (; r < n && this.places[r] !== -1;) r += 1;
		if (r >= n) return !1;
		this.firstEmpty[t] = r + 1, this.places[r] = e, this.placeOf[e] = r, this.regionOf[e] = t;
		let i = r - this.firstPlace[t], { columns: a, pitch: o } = this.shape;
		return this.x[e] = i % a * o, this.y[e] = this.regions[t].tilesTop + Math.floor(i / a) * o, !0;
	}
	move(e, t) {
		let n = this.regionOf[e];
		if (this.keys[n] === t) return "stays";
		let r = this.keys.indexOf(t);
		if (r < 0) return "stays";
		let i = this.placeOf[e];
		return this.put(e, r) ? (this.places[i] = -1, i < this.firstEmpty[n] && (this.firstEmpty[n] = i), "moved") : "full";
	}
	unitAt(e, t) {
		let { pitch: n, columns: r } = this.shape;
		if (e < 0 || e >= r * n) return null;
		for (let i = 0; i < this.regions.length; i += 1) {
			let { tilesTop: a, rows: o } = this.regions[i];
			if (t < a || t >= a + o * n) continue;
			let s = this.firstPlace[i] + Math.floor((t - a) / n) * r + Math.floor(e / n), c = this.places[s] ?? -1;
			return c >= 0 ? c : null;
		}
		return null;
	}
	beside(e, t, n) {
		let r = (n === 0 ? t : n * this.shape.columns) | 0;
		for (let t = this.placeOf[e] + r; t >= 0 && t < this.places.length; t += r) {
			let e = this.places[t];
			if (e >= 0) return e;
		}
		return e;
	}
	first() {
		return this.places.find((e) => e >= 0) ?? 0;
	}
};
function Kt(e) {
	return [...Array(e).keys(), 255];
}
// src/map/webgl.ts
var qt = 160, Jt = "#version 300 es\nprecision highp float;\nlayout(location = 0) in vec2 place;\nlayout(location = 1) in uvec4 tileLook;\nuniform vec2 canvas;\nuniform float tile;\nflat out uvec4 v_look;\nvoid main() {\n    v_look = tileLook;\n    vec2 at = (place + tile * 0.5) / canvas * 2.0 - 1.0;\n    gl_Position = vec4(at.x, -at.y, 0.0, 1.0);\n    gl_PointSize = tile;\n}", Yt = "#version 300 es\nprecision highp float;\nflat in uvec4 v_look;\nuniform float tile;\nuniform vec3 paper;\nuniform vec3 freeColour;\nuniform vec3 ink;\nuniform float deadShare;\nuniform sampler2D owners;\nout vec4 colour;\nvoid main() {\n    uint state = v_look.y;\n    if (state == 7u) { colour = vec4(paper, 1.0); return; }\n    if (state == 0u || v_look.x == 255u) { colour = vec4(freeColour, 1.0); return; }\n    vec3 owner = texelFetch(owners, ivec2(int(v_look.x), 0), 0).rgb;\n    vec3 dead = mix(paper, owner, deadShare);\n    float valid = float(v_look.z) / 255.0;\n    float written = float(v_look.w) / 255.0;\n    if (tile < 6.0) {\n        vec3 blend = mix(dead, owner, valid);\n        colour = vec4(state == 3u ? blend : mix(blend, ink, 0.45), 1.0);\n        return;\n    }\n    vec2 v_at = gl_PointCoord * tile;\n    float row = tile - v_at.y;\n    float validRows = floor(valid * tile + 0.5);\n    float writtenRows = max(validRows, floor(written * tile + 0.5));\n    vec3 fill = row < validRows ? owner : row < writtenRows ? dead : freeColour;\n    if (state != 3u) {\n        float border = tile >= 12.0 ? 2.0 : 1.0;\n        vec2 edge = min(v_at, tile - v_at);\n        bool framed = min(edge.x, edge.y) < border;\n        float arm = max(2.0, floor(tile / 3.0 + 0.5));\n        if (framed && (state == 1u || max(edge.x, edge.y) < arm)) fill = ink;\n    }\n    colour = vec4(fill, 1.0);\n}";
function Xt(e, t, n) {
	let r = e.createShader(t);
	if (r === null) throw Error("no shader");
	if (e.shaderSource(r, n), e.compileShader(r), e.getShaderParameter(r, e.COMPILE_STATUS) !== !0) throw Error(e.getShaderInfoLog(r) ?? "a shader does not compile");
	return r;
}
var Zt = class {
	kind = "webgl2";
	canvas;
	gl;
	program;
	buffer;
	at = {};
	constructor(e) {
		let t = e.getContext("webgl2", {
			alpha: !1,
			antialias: !1,
			depth: !1,
			preserveDrawingBuffer: !0
		});
		if (t === null) throw Error("no WebGL2");
		this.canvas = e, this.gl = t;
		let n = t.createProgram();
		if (t.attachShader(n, Xt(t, t.VERTEX_SHADER, Jt)), t.attachShader(n, Xt(t, t.FRAGMENT_SHADER, Yt)), t.linkProgram(n), t.getProgramParameter(n, t.LINK_STATUS) !== !0) throw Error(t.getProgramInfoLog(n) ?? "shaders do not link");
		this.program = n;
		for (let e of [
			"canvas",
			"tile",
			"paper",
			"freeColour",
			"ink",
			"deadShare",
			"owners"
		]) this.at[e] = t.getUniformLocation(n, e);
		let r = t.createBuffer();
		this.buffer = r, t.bindBuffer(t.ARRAY_BUFFER, r), t.bufferData(t.ARRAY_BUFFER, Pt * 8, t.DYNAMIC_DRAW), t.enableVertexAttribArray(0), t.vertexAttribPointer(0, 2, t.UNSIGNED_SHORT, !1, 8, 0), t.enableVertexAttribArray(1), t.vertexAttribIPointer(1, 4, t.UNSIGNED_BYTE, 8, 4);
	}
	begin(e, t, n, r) {
		let { gl: i, at: a } = this;
		this.canvas.width = e, this.canvas.height = t, i.viewport(0, 0, e, t);
		let o = (e) => {
			let [t, n, r] = At(e);
			return [
				t / 255,
				n / 255,
				r / 255
			];
		}, s = o(r.ground.paper);
		i.clearColor(...s, 1), i.clear(i.COLOR_BUFFER_BIT), i.useProgram(this.program), i.uniform2f(a.canvas ?? null, e, t), i.uniform1f(a.tile ?? null, n), i.uniform3f(a.paper ?? null, ...s), i.uniform3f(a.freeColour ?? null, ...o(r.ground.free)), i.uniform3f(a.ink ?? null, ...o(r.ground.ink)), i.uniform1f(a.deadShare ?? null, Nt), i.uniform1i(a.owners ?? null, 0);
		let c = (/* @__PURE__ */ new Uint8Array(640)).fill(255);
		r.owners.slice(0, qt).forEach((e, t) => c.set(e.map(Math.round), t * 4));
		let l = i.createTexture();
		i.bindTexture(i.TEXTURE_2D, l), i.texImage2D(i.TEXTURE_2D, 0, i.RGBA, qt, 1, 0, i.RGBA, i.UNSIGNED_BYTE, c), i.texParameteri(i.TEXTURE_2D, i.TEXTURE_MIN_FILTER, i.NEAREST), i.texParameteri(i.TEXTURE_2D, i.TEXTURE_MAG_FILTER, i.NEAREST);
	}
	draw(e) {
		let { gl: t } = this;
		t.bindBuffer(t.ARRAY_BUFFER, this.buffer), t.bufferSubData(t.ARRAY_BUFFER, 0, e.looks, 0, e.count * 8), t.drawArrays(t.POINTS, 0, e.count);
	}
	show() {}
	end() {
		this.gl.getExtension("WEBGL_lose_context")?.loseContext();
	}
}, Qt = null;
function $t() {
	if (Qt === null) {
		let e = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: !0 }), t = e?.getExtension("WEBGL_debug_renderer_info"), n = e === null || !t ? "" : String(e.getParameter(t.UNMASKED_RENDERER_WEBGL));
		Qt = e !== null && !/swiftshader|llvmpipe|software|basic render/i.test(n), e?.getExtension("WEBGL_lose_context")?.loseContext();
	}
	return Qt;
}
// src/map/painter.ts
var en = 28, tn = 620, nn = 420, G = 44, K = class {
	layout = null;
	focus = null;
	kind;
	tiles;
	above;
	renderer;
	batch = new It();
	drawnLooks = /* @__PURE__ */ new Uint32Array();
	flights = [];
	isAboveClean = !0;
	options;
	generation = -1;
	state;
	heading = 22;
	scale = 1;
	colours = [];
	isManyHandles = !1;
	constructor(e, t, n, r) {
		let i = t.getContext("2d");
		if (i === null) throw Error("This browser has no canvas to draw on.");
		this.tiles = e, this.above = i, this.state = n, this.options = r, this.renderer = rn(e), this.kind = this.renderer.kind, Ct.renderer = this.kind;
	}
	arrange(e, t, n, r) {
		this.options = r, this.scale = n;
		let { state: i } = this, a = i.lane, o = Math.max(1, Math.floor(e * n));
		this.heading = r.grouping === "physical" ? 0 : Math.round(24 * n);
		let s = this.keys(), c = r.grouping === "handle", l = Math.max(t, s.length * G) * n, u = Ut(this.counts(s), o, l, this.heading, +!!c, n);
		this.layout = new Gt(r.grouping, a.units, s, this.keyOf, {
			pitch: u,
			width: o
		}, this.heading);
		let d = c ? Math.max(Math.floor(t * n), this.layout.shape.height) : this.layout.shape.height, f = an(i);
		return this.isManyHandles = f > wt.length, this.colours = Dt(a.owners, f), this.above.canvas.width = o, this.above.canvas.height = d, this.renderer.begin(o, Math.max(1, d), this.layout.shape.size, this.rendererColours()), this.drawnLooks = new Uint32Array(a.units).fill(4294967295), this.generation = i.generation, this.flights = [], this.isAboveClean = !1, this.drawAll(), d / n;
	}
	rendererColours() {
		return {
			ground: this.options.ground,
			owners: this.colours.map(At)
		};
	}
	keys() {
		let { lane: e } = this.state;
		return this.options.grouping === "physical" ? [0] : this.options.grouping === "group" ? [...Array(Math.max(1, e.groups)).keys()] : Kt(e.owners.length).filter((e) => e === 255 || this.isOwnerShown(e));
	}
	isOwnerShown(e) {
		let t = this.state.owners[e];
		return t !== void 0 && (t.units > 0 || t.hostBytes > 0 || t.received > 0);
	}
	counts(e) {
		let t = new Map(e.map((e) => [e, 0]));
		for (let e = 0; e < this.state.lane.units; e += 1) {
			let n = this.keyOf(e);
			t.set(n, (t.get(n) ?? 0) + 1);
		}
		return [...t.values()];
	}
	keyOf = (e) => this.options.grouping === "handle" ? this.state.owner[this.state.unitOf(e)] : this.options.grouping === "group" ? this.state.group[e] : 0;
	lookOf(e) {
		let { state: t } = this, n = t.unitOf(e), r = t.state[n];
		if (r === 0) return Lt(255, 0, 0, 0);
		let i = t.pagesOf(n);
		return Lt(t.owner[n], r, t.valid[n] / i, t.written[n] / i);
	}
	put(e, t, n) {
		this.batch.add(e, t, n), this.batch.isFull && this.flush();
	}
	flush() {
		this.batch.count > 0 && this.renderer.draw(this.batch), this.batch.count = 0;
	}
	drawAll() {
		let { layout: e } = this;
		if (e !== null) {
			for (let t = 0; t < this.state.lane.units; t += 1) {
				let n = this.lookOf(t);
				this.drawnLooks[t] = n, this.put(e.x[t], e.y[t], n);
			}
			this.flush(), this.renderer.show(), this.state.taken();
		}
	}
	get isOutdated() {
		return this.layout === null || an(this.state) > wt.length !== this.isManyHandles || this.layout.shape.height > this.tiles.height || this.options.grouping === "handle" && this.keys().length !== this.layout.regions.length;
	}
	picture(e) {
		let t = performance.now(), { layout: n, state: r } = this;
		if (n === null) return !1;
		this.generation !== r.generation && (this.generation = r.generation, this.flights = [], this.redeal());
		let i = this.drawChanged(n);
		for (let t of r.moves) this.begin(t, e);
		r.moves.length = 0;
		let a = this.drawAbove(e);
		return Ct.picture(performance.now() - t, i), a;
	}
	drawChanged(e) {
		let { state: t } = this, n = this.options.grouping !== "physical", r = 0;
		for (let i = 0; i < t.changedCount; i += 1) {
			let a = t.changed[i];
			if (n) {
				let n = e.x[a], i = e.y[a], o = e.move(a, this.keyOf(a));
				if (o === "full") return this.redeal(), r + t.lane.units;
				o === "moved" && (this.put(n, i, Lt(255, 7, 0, 0)), this.drawnLooks[a] = 4294967295);
			}
			let o = this.lookOf(a);
			o !== this.drawnLooks[a] && (this.drawnLooks[a] = o, this.put(e.x[a], e.y[a], o), r += 1);
		}
		return this.flush(), this.renderer.show(), t.taken(), r;
	}
	redeal() {
		let { layout: e } = this;
		e !== null && (e.deal(this.keyOf), this.batch.count = 0, this.renderer.begin(this.tiles.width, this.tiles.height, e.shape.size, this.rendererColours()), this.flights = [], this.drawAll());
	}
	begin(e, t) {
		let { layout: n } = this;
		if (n === null || this.flights.length >= en || e.unit >= this.state.lane.units) return;
		let r = n.shape.size / 2, i = e.destination !== null && e.destination < this.state.lane.units ? e.destination : e.unit;
		this.flights.push({
			begun: t,
			colour: this.colours[e.owner] ?? Mt(At(this.options.ground.ink)),
			fromX: n.x[e.unit] + r,
			fromY: n.y[e.unit] + r,
			toX: n.x[i] + r,
			toY: n.y[i] + r,
			flies: this.options.moves && e.copiedPages > 0 && i !== e.unit,
			size: Math.max(2 * this.scale, r * 2 * Math.sqrt(e.copiedPages / Math.max(1, e.pages)))
		});
	}
	drawAbove(e) {
		if (this.flights.length === 0 && this.isAboveClean) return !1;
		let { above: t, layout: n } = this;
		t.clearRect(0, 0, t.canvas.width, t.canvas.height);
		let r = 0;
		for (let t = 0; t < this.flights.length; t += 1) {
			let n = this.flights[t];
			e - n.begun > (n.flies ? tn : nn) || (this.flights[r] = n, r += 1, this.drawFlight(n, e));
		}
		if (this.flights.length = r, this.focus !== null && n !== null) {
			let e = Math.max(2, Math.round(2 * this.scale));
			t.globalAlpha = 1, t.strokeStyle = this.options.ground.ink, t.lineWidth = e;
			let r = Math.max(n.shape.size, 8 * this.scale), i = (r - n.shape.size) / 2;
			t.strokeRect(n.x[this.focus] - i - e / 2, n.y[this.focus] - i - e / 2, r + e, r + e);
		}
		return t.globalAlpha = 1, this.isAboveClean = r === 0, r > 0;
	}
	drawFlight(e, t) {
		let { above: n, layout: r } = this, i = r.shape.size, a = 1 - (t - e.begun) / nn;
		if (a > 0) {
			n.globalAlpha = a, n.strokeStyle = this.options.ground.ink, n.lineWidth = Math.max(1, 1.5 * this.scale);
			let t = i + 2 + (this.options.moves ? (1 - a) * 6 : 2) * this.scale;
			n.strokeRect(e.fromX - t / 2, e.fromY - t / 2, t, t);
		}
		if (!e.flies) return;
		let o = Math.min(1, (t - e.begun) / tn), s = o * o * (3 - 2 * o);
		n.globalAlpha = o > .85 ? (1 - o) / .15 : 1, n.fillStyle = e.colour, n.strokeStyle = this.options.ground.paper, n.lineWidth = this.scale;
		let c = e.fromX + (e.toX - e.fromX) * s - e.size / 2, l = e.fromY + (e.toY - e.fromY) * s - e.size / 2 - Math.sin(o * Math.PI) * 10 * this.scale;
		n.fillRect(c, l, e.size, e.size), n.strokeRect(c, l, e.size, e.size);
	}
	setFocus(e) {
		this.focus !== e && (this.focus = e, this.isAboveClean = !1);
	}
	end() {
		this.renderer.end();
	}
};
function rn(e) {
	let t = new URLSearchParams(globalThis.location?.search ?? "").get("renderer");
	if (t === "canvas" || t !== "webgl2" && !$t()) return new Vt(e);
	try {
		return new Zt(e);
	} catch {
		return new Vt(e);
	}
}
function an(e) {
	let t = (t) => {
		let n = e.owners[t];
		return n !== void 0 && (n.units > 0 || n.hostBytes > 0);
	}, n = 0;
	return e.lane.owners.forEach((e, r) => {
		e.isolation !== null && t(r) && (n = r + 1);
	}), n;
}
// node_modules/preact/jsx-runtime/dist/jsxRuntime.mjs
var on = Symbol.for("pv"), sn = 0;
Array.isArray;
function q(t, n, r, i, a, o) {
	n ||= {};
	var s, c, l = n;
	if ("ref" in l && typeof t != "function") for (c in l = {}, n) c == "ref" ? s = n[c] : l[c] = n[c];
	var u = {
		type: t,
		props: l,
		key: r,
		ref: s,
		__k: null,
		__: null,
		__b: 0,
		__e: null,
		__c: null,
		constructor: on,
		__v: --sn,
		__i: -1,
		__u: 0
	};
	return (a || o) && (u.__source = a, u.__self = o), e.vnode && e.vnode(u), u;
}
// src/parts/LaneTag.tsx
function cn(e) {
	return String.fromCharCode(65 + e);
}
function ln({ index: e }) {
	let t = qs[e % qs.length];
	return /* @__PURE__ */ q("span", {
		class: "lane-tag",
		children: [/* @__PURE__ */ q("b", { children: cn(e) }), /* @__PURE__ */ q("svg", {
			width: "26",
			height: "4",
			viewBox: "0 0 26 4",
			"aria-hidden": "true",
			children: /* @__PURE__ */ q("line", {
				x1: "0",
				y1: "2",
				x2: "26",
				y2: "2",
				class: t.colour,
				"stroke-width": t.width,
				"stroke-dasharray": t.dash.join(" ")
			})
		})]
	});
}
// src/parts/Choice.tsx
function un({ label: e, value: t, onChange: n, choices: r }) {
	let i = Te();
	return /* @__PURE__ */ q("fieldset", {
		class: "choice",
		children: [/* @__PURE__ */ q("legend", {
			class: "hidden",
			children: e
		}), r.map(([e, r]) => /* @__PURE__ */ q("label", { children: [/* @__PURE__ */ q("input", {
			type: "radio",
			name: i,
			checked: t === e,
			onChange: () => n(e)
		}), /* @__PURE__ */ q("span", { children: r })] }, e))]
	});
}
function dn({ lanes: e, value: t }) {
	return e.length < 2 ? null : /* @__PURE__ */ q("label", {
		class: "inline",
		children: ["of", /* @__PURE__ */ q("select", {
			value: Math.min(t.value, e.length - 1),
			onChange: (e) => t.value = Number(e.currentTarget.value),
			children: e.map((e, t) => /* @__PURE__ */ q("option", {
				value: t,
				children: [
					cn(t),
					" ",
					e.lane.name
				]
			}, t))
		})]
	});
}
// src/state/numbers.ts
var fn = "\xA0", pn = [
	"B",
	"KiB",
	"MiB",
	"GiB",
	"TiB",
	"PiB"
];
function mn(e) {
	let t = 0, n = e;
	for (; n >= 1024 && t < pn.length - 1;) n /= 1024, t += 1;
	return `${hn(n)}${fn}${pn[t]}`;
}
function hn(e) {
	return Number.isInteger(e) ? String(e) : e >= 100 ? e.toFixed(0) : e >= 10 ? e.toFixed(1) : e.toFixed(2);
}
function gn(e) {
	let t = e / 1e6;
	return `${t >= 1e3 ? yn(Math.round(t)) : hn(Number(t.toFixed(2)))}${fn}MB/s`;
}
function _n(e) {
	return e === null ? "–" : e.toFixed(3);
}
function vn(e) {
	let t = e * 100;
	return t === 0 ? `0${fn}%` : t < .1 ? `<0.1${fn}%` : `${t.toFixed(t >= 99.95 ? 0 : 1)}${fn}%`;
}
function yn(e) {
	return Math.round(e).toString().replace(/\B(?=(\d{3})+$)/g, " ");
}
function bn(e, t) {
	return `${yn(e)}${fn}${t}${e === 1 ? "" : "s"}`;
}
function xn(e) {
	return e > 0 && e < .01 ? "<0.01" : e.toFixed(2);
}
function Sn(e) {
	for (let [t, n] of [
		["s", 1e9],
		["ms", 1e6],
		["µs", 1e3]
	]) if (e >= n) return `${hn(Number((e / n).toPrecision(3)))}${fn}${t}`;
	return `${Math.round(e)}${fn}ns`;
}
function Cn(e, t) {
	let n = (e) => String(e).padStart(2, "0"), [r, i] = [new Date(e), new Date(t)], a = `${n(r.getHours())}:${n(r.getMinutes())}:${n(r.getSeconds())}`;
	return r.toDateString() === i.toDateString() ? a : `${r.getFullYear()}-${n(r.getMonth() + 1)}-${n(r.getDate())} ${a}`;
}
function wn(e) {
	return e >= 1e9 ? `${hn(Number((e / 1e9).toPrecision(3)))}${fn}G` : e >= 1e6 ? `${hn(Number((e / 1e6).toPrecision(3)))}${fn}M` : e >= 1e4 ? `${hn(Number((e / 1e3).toPrecision(3)))}${fn}k` : yn(e);
}
// src/state/series.ts
function Tn(e, t) {
	let n = {
		x: [],
		y: []
	};
	for (let r = 0; r < e.length; r += 1) {
		let i = e.host(r);
		i <= 0 || (n.x.push(e.at(r) / t), n.y.push(e.media(r) / i));
	}
	return n;
}
var En = 1e-7;
function Dn(e, t, n, r = []) {
	let i = {
		x: [],
		y: []
	}, a = -1, o = 0;
	for (let s = 0; s < e.length; s += 1) {
		let c = e.host(s);
		for (let n = r[o]; n !== void 0 && e.at(s) >= n.to; n = r[o]) {
			let r = s - 1;
			for (; r >= 0 && e.at(r) > n.from;) --r;
			let l = r < 0 ? 0 : e.host(r), u = c > l ? (e.media(s) - (r < 0 ? 0 : e.media(r))) / (c - l) : null;
			i.x.push(n.from / t + En, n.to / t), i.y.push(u, u), a = s, o += 1;
		}
		if (a === s || e.at(s) > (r[o]?.from ?? Infinity)) continue;
		for (; a + 1 < s && e.at(s) - e.at(a + 1) >= n;) a += 1;
		let l = a < 0 ? 0 : e.host(a), u = a < 0 ? 0 : e.media(a);
		c <= 0 || (i.x.push(e.at(s) / t), i.y.push(c > l ? (e.media(s) - u) / (c - l) : null));
	}
	return i;
}
function On(e) {
	let t = e.sampleHost.length;
	return {
		length: t + +(e.hostBytes > (t === 0 ? 0 : e.sampleHost.at(t - 1))),
		at: (n) => n < t ? e.sampleHost.at(n) : e.hostBytes,
		host: (n) => n < t ? e.sampleHost.at(n) : e.hostBytes,
		media: (n) => n < t ? e.sampleMedia.at(n) : e.mediaBytes
	};
}
function kn(e, t) {
	let n = e.sampleOwnerHost[t], r = e.sampleOwnerCopied[t], i = e.lane.page_bytes;
	return {
		length: n === void 0 || r === void 0 ? 0 : n.length,
		at: (t) => e.sampleHost.at(t),
		host: (e) => n?.at(e) ?? 0,
		media: (e) => (n?.at(e) ?? 0) + (r?.at(e) ?? 0) * i
	};
}
function An(e, t) {
	let n = 0, r = 0;
	for (let i = 0; i < e.sampleHost.length && e.sampleHost.at(i) <= t; i += 1) n = e.sampleHost.at(i), r = e.sampleMedia.at(i);
	return e.hostBytes > n ? (e.mediaBytes - r) / (e.hostBytes - n) : null;
}
function jn(e) {
	let t = [...new Set(e.flatMap((e) => e.x))].sort((e, t) => e - t), n = new Map(t.map((e, t) => [e, t]));
	return {
		x: t,
		ys: e.map((e) => {
			let r = Array(t.length).fill(null);
			return e.x.forEach((t, i) => {
				r[n.get(t)] = e.y[i] ?? null;
			}), r;
		})
	};
}
// src/state/unwatched.ts
function Mn(e, t, n) {
	let r = e.to_host_bytes - e.from_host_bytes, i = Cn(e.until_unix_ms, n);
	return `${e.from_host_bytes === 0 ? `The drive was not monitored before ${i}, so the curves begin there. Earlier,` : `The drive was not monitored until ${i}, so the curves continue there. In the gap,`} hosts wrote ${xn(r / t)} drive writes, with a WAF of ${_n(e.media_bytes / r)} and ${bn(e.collections, "collection")}. The flat line shows this average.`;
}
// node_modules/uplot/dist/uPlot.esm.js
var Nn = !0, Pn = "uplot", Fn = "u-hz", In = "u-vt", Ln = "u-title", Rn = "u-wrap", zn = "u-under", Bn = "u-over", Vn = "u-axis", Hn = "u-off", Un = "u-select", Wn = "u-cursor-x", Gn = "u-cursor-y", Kn = "u-cursor-pt", qn = "u-legend", Jn = "u-live", Yn = "u-inline", Xn = "u-series", Zn = "u-marker", Qn = "u-label", $n = "u-value", er = "width", tr = "height", nr = "top", rr = "bottom", ir = "left", ar = "right", or = "#000", sr = "#0000", cr = "mousemove", lr = "mousedown", ur = "mouseup", dr = "mouseenter", fr = "mouseleave", pr = "dblclick", mr = "resize", hr = "scroll", gr = "change", _r = "dppxchange", vr = "--", yr = typeof window < "u", br = yr ? document : null, xr = yr ? window : null, Sr = yr ? navigator : null, J, Cr;
function wr() {
	let e = devicePixelRatio;
	J != e && (J = e, Cr && Rr(gr, Cr, wr), Cr = matchMedia(`(min-resolution: ${J - .001}dppx) and (max-resolution: ${J + .001}dppx)`), Lr(gr, Cr, wr), xr.dispatchEvent(new CustomEvent(_r)));
}
function Tr(e, t) {
	if (t != null) {
		let n = e.classList;
		!n.contains(t) && n.add(t);
	}
}
function Er(e, t) {
	let n = e.classList;
	n.contains(t) && n.remove(t);
}
function Y(e, t, n) {
	e.style[t] = n + "px";
}
function Dr(e, t, n, r) {
	let i = br.createElement(e);
	return t != null && Tr(i, t), n?.insertBefore(i, r), i;
}
function Or(e, t) {
	return Dr("div", e, t);
}
var kr = /* @__PURE__ */ new WeakMap();
function Ar(e, t, n, r, i) {
	let a = "translate(" + t + "px," + n + "px)";
	a != kr.get(e) && (e.style.transform = a, kr.set(e, a), t < 0 || n < 0 || t > r || n > i ? Tr(e, Hn) : Er(e, Hn));
}
var jr = /* @__PURE__ */ new WeakMap();
function Mr(e, t, n) {
	let r = t + n;
	r != jr.get(e) && (jr.set(e, r), e.style.background = t, e.style.borderColor = n);
}
var Nr = /* @__PURE__ */ new WeakMap();
function Pr(e, t, n, r) {
	let i = t + "" + n;
	i != Nr.get(e) && (Nr.set(e, i), e.style.height = n + "px", e.style.width = t + "px", e.style.marginLeft = r ? -t / 2 + "px" : 0, e.style.marginTop = r ? -n / 2 + "px" : 0);
}
var Fr = { passive: !0 }, Ir = {
	...Fr,
	capture: !0
};
function Lr(e, t, n, r) {
	t.addEventListener(e, n, r ? Ir : Fr);
}
function Rr(e, t, n, r) {
	t.removeEventListener(e, n, Fr);
}
yr && wr();
function zr(e, t, n, r) {
	let i;
	n ||= 0, r ||= t.length - 1;
	let a = r <= 2147483647;
	for (; r - n > 1;) i = a ? n + r >> 1 : oi((n + r) / 2), t[i] < e ? n = i : r = i;
	return e - t[n] <= t[r] - e ? n : r;
}
function Br(e) {
	return (t, n, r) => {
		let i = -1, a = -1;
		for (let a = n; a <= r; a++) if (e(t[a])) {
			i = a;
			break;
		}
		for (let i = r; i >= n; i--) if (e(t[i])) {
			a = i;
			break;
		}
		return [i, a];
	};
}
var Vr = (e) => e != null, Hr = (e) => e != null && e > 0, Ur = Br(Vr), Wr = Br(Hr);
function Gr(e, t, n, r = 0, i = !1) {
	let a = i ? Wr : Ur, o = i ? Hr : Vr;
	[t, n] = a(e, t, n);
	let s = e[t], c = e[t];
	if (t > -1) {
		if (r == 1) s = e[t], c = e[n];
		else if (r == -1) s = e[n], c = e[t];
		else for (let r = t; r <= n; r++) {
			let t = e[r];
			o(t) && (t < s ? s = t : t > c && (c = t));
		}
	}
	return [s ?? _i, c ?? -_i];
}
function Kr(e, t, n, r) {
	let i = fi(e), a = fi(t);
	e == t && (i == -1 ? (e *= n, t /= n) : (e /= n, t *= n));
	let o = n == 10 ? pi : mi, s = i == 1 ? oi : ci, c = a == 1 ? ci : oi, l = s(o(ai(e))), u = c(o(ai(t))), d = di(n, l), f = di(n, u);
	return n == 10 && (l < 0 && (d = Q(d, -l)), u < 0 && (f = Q(f, -u))), r || n == 2 ? (e = d * i, t = f * a) : (e = ji(e, d), t = Ai(t, f)), [e, t];
}
function qr(e, t, n, r) {
	let i = Kr(e, t, n, r);
	return e == 0 && (i[0] = 0), t == 0 && (i[1] = 0), i;
}
var Jr = .1, Yr = {
	mode: 3,
	pad: Jr
}, Xr = {
	pad: 0,
	soft: null,
	mode: 0
}, Zr = {
	min: Xr,
	max: Xr
};
function Qr(e, t, n, r) {
	return Hi(n) ? ei(e, t, n) : (Xr.pad = n, Xr.soft = r ? 0 : null, Xr.mode = r ? 3 : 0, ei(e, t, Zr));
}
function X(e, t) {
	return e ?? t;
}
function $r(e, t, n) {
	for (t = X(t, 0), n = X(n, e.length - 1); t <= n;) {
		if (e[t] != null) return !0;
		t++;
	}
	return !1;
}
function ei(e, t, n) {
	let r = n.min, i = n.max, a = X(r.pad, 0), o = X(i.pad, 0), s = X(r.hard, -_i), c = X(i.hard, _i), l = X(r.soft, _i), u = X(i.soft, -_i), d = X(r.mode, 0), f = X(i.mode, 0), p = t - e, m = pi(p), h = ui(ai(e), ai(t)), g = ai(pi(h) - m);
	(p < 1e-24 || g > 10) && (p = 0, (e == 0 || t == 0) && (p = 1e-24, d == 2 && l != _i && (a = 0), f == 2 && u != -_i && (o = 0)));
	let _ = p || h || 1e3, v = di(10, oi(pi(_))), y = Q(ji(e - _ * (p == 0 ? e == 0 ? .1 : 1 : a), v / 10), 24), b = e >= l && (d == 1 || d == 3 && y <= l || d == 2 && y >= l) ? l : _i, x = ui(s, y < b && e >= b ? b : li(b, y)), S = Q(Ai(t + _ * (p == 0 ? t == 0 ? .1 : 1 : o), v / 10), 24), C = t <= u && (f == 1 || f == 3 && S >= u || f == 2 && S <= u) ? u : -_i, w = li(c, S > C && t <= C ? C : ui(C, S));
	return x == w && x == 0 && (w = 100), [x, w];
}
var ti = new Intl.NumberFormat(yr ? Sr.language : "en-US"), ni = (e) => ti.format(e), ri = Math, ii = ri.PI, ai = ri.abs, oi = ri.floor, si = ri.round, ci = ri.ceil, li = ri.min, ui = ri.max, di = ri.pow, fi = ri.sign, pi = ri.log10, mi = ri.log2, hi = (e, t = 1) => ri.sinh(e) * t, gi = (e, t = 1) => ri.asinh(e / t), _i = Infinity;
function vi(e) {
	return (pi((e ^ e >> 31) - (e >> 31)) | 0) + 1;
}
function yi(e, t, n) {
	return li(ui(e, t), n);
}
function bi(e) {
	return typeof e == "function";
}
function Z(e) {
	return bi(e) ? e : () => e;
}
var xi = () => {}, Si = (e) => e, Ci = (e, t) => t, wi = (e) => null, Ti = (e) => !0, Ei = (e, t) => e == t, Di = /\.\d*?(?=9{6,}|0{6,})/gm, Oi = (e) => {
	if (zi(e) || Mi.has(e)) return e;
	let t = `${e}`, n = t.match(Di);
	if (n == null) return e;
	let r = n[0].length - 1;
	if (t.indexOf("e-") != -1) {
		let [e, n] = t.split("e");
		return +`${Oi(e)}e${n}`;
	}
	return Q(e, r);
};
function ki(e, t) {
	return Oi(Q(Oi(e / t)) * t);
}
function Ai(e, t) {
	return Oi(ci(Oi(e / t)) * t);
}
function ji(e, t) {
	return Oi(oi(Oi(e / t)) * t);
}
function Q(e, t = 0) {
	if (zi(e)) return e;
	let n = 10 ** t;
	return si(e * n * (1 + 2 ** -52)) / n;
}
var Mi = /* @__PURE__ */ new Map();
function Ni(e) {
	return (("" + e).split(".")[1] || "").length;
}
function Pi(e, t, n, r) {
	let i = [], a = r.map(Ni);
	for (let o = t; o < n; o++) {
		let t = ai(o), n = Q(di(e, o), t);
		for (let s = 0; s < r.length; s++) {
			let c = e == 10 ? +`${r[s]}e${o}` : r[s] * n, l = (o >= 0 ? 0 : t) + (o >= a[s] ? 0 : a[s]), u = e == 10 ? c : Q(c, l);
			i.push(u), Mi.set(u, l);
		}
	}
	return i;
}
var Fi = {}, Ii = [], Li = [null, null], Ri = Array.isArray, zi = Number.isInteger, Bi = (e) => e === void 0;
function Vi(e) {
	return typeof e == "string";
}
function Hi(e) {
	let t = !1;
	if (e != null) {
		let n = e.constructor;
		t = n == null || n == Object;
	}
	return t;
}
function Ui(e) {
	return typeof e == "object" && !!e;
}
var Wi = Object.getPrototypeOf(Uint8Array), Gi = "__proto__";
function Ki(e, t = Hi) {
	let n;
	if (Ri(e)) {
		let r = e.find((e) => e != null);
		if (Ri(r) || t(r)) {
			n = Array(e.length);
			for (let r = 0; r < e.length; r++) n[r] = Ki(e[r], t);
		} else n = e.slice();
	} else if (e instanceof Wi) n = e.slice();
	else if (t(e)) {
		n = {};
		for (let r in e) r != Gi && (n[r] = Ki(e[r], t));
	} else n = e;
	return n;
}
function qi(e) {
	let t = arguments;
	for (let n = 1; n < t.length; n++) {
		let r = t[n];
		for (let t in r) t != Gi && (Hi(e[t]) ? qi(e[t], Ki(r[t])) : e[t] = Ki(r[t]));
	}
	return e;
}
var Ji = 0, Yi = 1, Xi = 2;
function Zi(e, t, n) {
	for (let r = 0, i, a = -1; r < t.length; r++) {
		let o = t[r];
		if (o > a) {
			for (i = o - 1; i >= 0 && e[i] == null;) e[i--] = null;
			for (i = o + 1; i < n && e[i] == null;) e[a = i++] = null;
		}
	}
}
function Qi(e, t) {
	if (ta(e)) {
		let t = e[0].slice();
		for (let n = 1; n < e.length; n++) t.push(...e[n].slice(1));
		return na(t[0]) || (t = ea(t)), t;
	}
	let n = /* @__PURE__ */ new Set();
	for (let t = 0; t < e.length; t++) {
		let r = e[t][0], i = r.length;
		for (let e = 0; e < i; e++) n.add(r[e]);
	}
	let r = [Array.from(n).sort((e, t) => e - t)], i = r[0].length, a = /* @__PURE__ */ new Map();
	for (let e = 0; e < i; e++) a.set(r[0][e], e);
	for (let n = 0; n < e.length; n++) {
		let o = e[n], s = o[0];
		for (let e = 1; e < o.length; e++) {
			let c = o[e], l = Array(i).fill(void 0), u = t ? t[n][e] : Yi, d = [];
			for (let e = 0; e < c.length; e++) {
				let t = c[e], n = a.get(s[e]);
				t === null ? u != Ji && (l[n] = t, u == Xi && d.push(n)) : l[n] = t;
			}
			Zi(l, d, i), r.push(l);
		}
	}
	return r;
}
var $i = typeof queueMicrotask > "u" ? (e) => Promise.resolve().then(e) : queueMicrotask;
function ea(e) {
	let t = e[0], n = t.length, r = Array(n);
	for (let e = 0; e < r.length; e++) r[e] = e;
	r.sort((e, n) => t[e] - t[n]);
	let i = [];
	for (let t = 0; t < e.length; t++) {
		let a = e[t], o = Array(n);
		for (let e = 0; e < n; e++) o[e] = a[r[e]];
		i.push(o);
	}
	return i;
}
function ta(e) {
	let t = e[0][0], n = t.length;
	for (let r = 1; r < e.length; r++) {
		let i = e[r][0];
		if (i.length != n) return !1;
		if (i != t) {
			for (let e = 0; e < n; e++) if (i[e] != t[e]) return !1;
		}
	}
	return !0;
}
function na(e, t = 100) {
	let n = e.length;
	if (n <= 1) return !0;
	let r = 0, i = n - 1;
	for (; r <= i && e[r] == null;) r++;
	for (; i >= r && e[i] == null;) i--;
	if (i <= r) return !0;
	let a = ui(1, oi((i - r + 1) / t));
	for (let t = e[r], n = r + a; n <= i; n += a) {
		let r = e[n];
		if (r != null) {
			if (r <= t) return !1;
			t = r;
		}
	}
	return !0;
}
var ra = [
	"January",
	"February",
	"March",
	"April",
	"May",
	"June",
	"July",
	"August",
	"September",
	"October",
	"November",
	"December"
], ia = [
	"Sunday",
	"Monday",
	"Tuesday",
	"Wednesday",
	"Thursday",
	"Friday",
	"Saturday"
];
function aa(e) {
	return e.slice(0, 3);
}
var oa = ia.map(aa), sa = {
	MMMM: ra,
	MMM: ra.map(aa),
	WWWW: ia,
	WWW: oa
};
function ca(e) {
	return (e < 10 ? "0" : "") + e;
}
function la(e) {
	return (e < 10 ? "00" : e < 100 ? "0" : "") + e;
}
var ua = {
	YYYY: (e) => e.getFullYear(),
	YY: (e) => (e.getFullYear() + "").slice(2),
	MMMM: (e, t) => t.MMMM[e.getMonth()],
	MMM: (e, t) => t.MMM[e.getMonth()],
	MM: (e) => ca(e.getMonth() + 1),
	M: (e) => e.getMonth() + 1,
	DD: (e) => ca(e.getDate()),
	D: (e) => e.getDate(),
	WWWW: (e, t) => t.WWWW[e.getDay()],
	WWW: (e, t) => t.WWW[e.getDay()],
	HH: (e) => ca(e.getHours()),
	H: (e) => e.getHours(),
	h: (e) => {
		let t = e.getHours();
		return t == 0 ? 12 : t > 12 ? t - 12 : t;
	},
	AA: (e) => e.getHours() >= 12 ? "PM" : "AM",
	aa: (e) => e.getHours() >= 12 ? "pm" : "am",
	a: (e) => e.getHours() >= 12 ? "p" : "a",
	mm: (e) => ca(e.getMinutes()),
	m: (e) => e.getMinutes(),
	ss: (e) => ca(e.getSeconds()),
	s: (e) => e.getSeconds(),
	fff: (e) => la(e.getMilliseconds())
};
function da(e, t) {
	t ||= sa;
	let n = [], r = /\{([a-z]+)\}|[^{]+/gi, i;
	for (; i = r.exec(e);) n.push(i[0][0] == "{" ? ua[i[1]] : i[0]);
	return (e) => {
		let r = "";
		for (let i = 0; i < n.length; i++) r += typeof n[i] == "string" ? n[i] : n[i](e, t);
		return r;
	};
}
var fa = new Intl.DateTimeFormat().resolvedOptions().timeZone;
function pa(e, t) {
	let n;
	return t == "UTC" || t == "Etc/UTC" ? n = /* @__PURE__ */ new Date(+e + e.getTimezoneOffset() * 6e4) : t == fa ? n = e : (n = new Date(e.toLocaleString("en-US", { timeZone: t })), n.setMilliseconds(e.getMilliseconds())), n;
}
var ma = (e) => e % 1 == 0, ha = [
	1,
	2,
	2.5,
	5
], ga = Pi(10, -32, 0, ha), _a = Pi(10, 0, 32, ha), va = _a.filter(ma), ya = ga.concat(_a), ba = "\n", xa = "{YYYY}", Sa = ba + xa, Ca = "{M}/{D}", wa = ba + Ca, Ta = wa + "/{YY}", Ea = "{aa}", Da = "{h}:{mm}" + Ea, Oa = ba + Da, ka = ":{ss}", $ = null;
function Aa(e) {
	let t = e * 1e3, n = t * 60, r = n * 60, i = r * 24, a = i * 30, o = i * 365, s = (e == 1 ? Pi(10, 0, 3, ha).filter(ma) : Pi(10, -3, 0, ha)).concat([
		t,
		t * 5,
		t * 10,
		t * 15,
		t * 30,
		n,
		n * 5,
		n * 10,
		n * 15,
		n * 30,
		r,
		r * 2,
		r * 3,
		r * 4,
		r * 6,
		r * 8,
		r * 12,
		i,
		i * 2,
		i * 3,
		i * 4,
		i * 5,
		i * 6,
		i * 7,
		i * 8,
		i * 9,
		i * 10,
		i * 15,
		a,
		a * 2,
		a * 3,
		a * 4,
		a * 6,
		o,
		o * 2,
		o * 5,
		o * 10,
		o * 25,
		o * 50,
		o * 100
	]), c = [
		[
			o,
			xa,
			$,
			$,
			$,
			$,
			$,
			$,
			1
		],
		[
			i * 28,
			"{MMM}",
			Sa,
			$,
			$,
			$,
			$,
			$,
			1
		],
		[
			i,
			Ca,
			Sa,
			$,
			$,
			$,
			$,
			$,
			1
		],
		[
			r,
			"{h}" + Ea,
			Ta,
			$,
			wa,
			$,
			$,
			$,
			1
		],
		[
			n,
			Da,
			Ta,
			$,
			wa,
			$,
			$,
			$,
			1
		],
		[
			t,
			ka,
			Ta + " " + Da,
			$,
			wa + " " + Da,
			$,
			Oa,
			$,
			1
		],
		[
			e,
			ka + ".{fff}",
			Ta + " " + Da,
			$,
			wa + " " + Da,
			$,
			Oa,
			$,
			1
		]
	];
	function l(t) {
		return (s, c, l, u, d, f) => {
			let p = [], m = d >= o, h = d >= a && d < o, g = t(l), _ = Q(g * e, 3), v = Ba(g.getFullYear(), m ? 0 : g.getMonth(), h || m ? 1 : g.getDate()), y = Q(v * e, 3);
			if (h || m) {
				let n = h ? d / a : 0, r = m ? d / o : 0, i = _ == y ? _ : Q(Ba(v.getFullYear() + r, v.getMonth() + n, 1) * e, 3), s = new Date(si(i / e)), c = s.getFullYear(), l = s.getMonth();
				for (let a = 0; i <= u; a++) {
					let o = Ba(c + r * a, l + n * a, 1), s = o - t(Q(o * e, 3));
					i = Q((+o + s) * e, 3), i <= u && p.push(i);
				}
			} else {
				let a = d >= i ? i : d, o = y + (oi(l) - oi(_)) + Ai(_ - y, a);
				p.push(o);
				let m = t(o), h = m.getHours() + m.getMinutes() / n + m.getSeconds() / r, g = d / r, v = f / s.axes[c]._space;
				for (; o = Q(o + d, e == 1 ? 0 : 3), !(o > u);) if (g > 1) {
					let e = oi(Q(h + g, 6)) % 24, n = t(o).getHours() - e;
					n > 1 && (n = -1), o -= n * r, h = (h + g) % 24;
					let i = p[p.length - 1];
					Q((o - i) / d, 3) * v >= .7 && p.push(o);
				} else p.push(o);
			}
			return p;
		};
	}
	return [
		s,
		c,
		l
	];
}
var [ja, Ma, Na] = Aa(1), [Pa, Fa, Ia] = Aa(.001);
Pi(2, -53, 53, [1]);
function La(e, t) {
	return e.map((e) => e.map((n, r) => r == 0 || r == 8 || n == null ? n : t(r == 1 || e[8] == 0 ? n : e[1] + n)));
}
function Ra(e, t) {
	return (n, r, i, a, o) => {
		let s = t.find((e) => o >= e[0]) || t[t.length - 1], c, l, u, d, f, p;
		return r.map((t) => {
			let n = e(t), r = n.getFullYear(), i = n.getMonth(), a = n.getDate(), o = n.getHours(), m = n.getMinutes(), h = n.getSeconds(), g = r != c && s[2] || i != l && s[3] || a != u && s[4] || o != d && s[5] || m != f && s[6] || h != p && s[7] || s[1];
			return c = r, l = i, u = a, d = o, f = m, p = h, g(n);
		});
	};
}
function za(e, t) {
	let n = da(t);
	return (t, r, i, a, o) => r.map((t) => n(e(t)));
}
function Ba(e, t, n) {
	return new Date(e, t, n);
}
function Va(e, t) {
	return t(e);
}
var Ha = "{YYYY}-{MM}-{DD} {h}:{mm}{aa}";
function Ua(e, t) {
	return (n, r, i, a) => a == null ? vr : t(e(r));
}
function Wa(e, t) {
	let n = e.series[t];
	return n.width ? n.stroke(e, t) : n.points.width ? n.points.stroke(e, t) : null;
}
function Ga(e, t) {
	return e.series[t].fill(e, t);
}
var Ka = {
	show: !0,
	live: !0,
	isolate: !1,
	mount: xi,
	markers: {
		show: !0,
		width: 2,
		stroke: Wa,
		fill: Ga,
		dash: "solid"
	},
	idx: null,
	idxs: null,
	values: []
};
function qa(e, t) {
	let n = e.cursor.points, r = Or(), i = n.size(e, t);
	Y(r, er, i), Y(r, tr, i);
	let a = i / -2;
	Y(r, "marginLeft", a), Y(r, "marginTop", a);
	let o = n.width(e, t, i);
	return o && Y(r, "borderWidth", o), r;
}
function Ja(e, t) {
	let n = e.series[t].points;
	return n._fill || n._stroke;
}
function Ya(e, t) {
	let n = e.series[t].points;
	return n._stroke || n._fill;
}
function Xa(e, t) {
	return e.series[t].points.size;
}
var Za = [0, 0];
function Qa(e, t, n) {
	return Za[0] = t, Za[1] = n, Za;
}
function $a(e, t, n, r = !0) {
	return (e) => {
		e.button != 0 || r && e.target != t || n(e);
	};
}
function eo(e, t, n, r = !0) {
	return (e) => {
		r && e.target != t || n(e);
	};
}
var to = {
	show: !0,
	x: !0,
	y: !0,
	lock: !1,
	move: Qa,
	points: {
		one: !1,
		show: qa,
		size: Xa,
		width: 0,
		stroke: Ya,
		fill: Ja
	},
	bind: {
		mousedown: $a,
		mouseup: $a,
		click: $a,
		dblclick: $a,
		mousemove: eo,
		mouseleave: eo,
		mouseenter: eo
	},
	drag: {
		setScale: !0,
		x: !0,
		y: !1,
		dist: 0,
		uni: null,
		click: (e, t) => {
			t.stopPropagation(), t.stopImmediatePropagation();
		},
		_x: !1,
		_y: !1
	},
	focus: {
		dist: (e, t, n, r, i) => r - i,
		prox: -1,
		bias: 0
	},
	hover: {
		skip: [void 0],
		prox: null,
		bias: 0
	},
	left: -10,
	top: -10,
	idx: null,
	dataIdx: null,
	idxs: null,
	event: null
}, no = {
	show: !0,
	stroke: "rgba(0,0,0,0.07)",
	width: 2
}, ro = qi({}, no, { filter: Ci }), io = qi({}, ro, { size: 10 }), ao = qi({}, no, { show: !1 }), oo = "12px system-ui, -apple-system, \"Segoe UI\", Roboto, \"Helvetica Neue\", Arial, \"Noto Sans\", sans-serif, \"Apple Color Emoji\", \"Segoe UI Emoji\", \"Segoe UI Symbol\", \"Noto Color Emoji\"", so = "bold " + oo, co = 1.5, lo = {
	show: !0,
	scale: "x",
	stroke: or,
	space: 50,
	gap: 5,
	alignTo: 1,
	size: 50,
	labelGap: 0,
	labelSize: 30,
	labelFont: so,
	side: 2,
	grid: ro,
	ticks: io,
	border: ao,
	font: oo,
	lineGap: co,
	rotate: 0
}, uo = "Value", fo = "Time", po = {
	show: !0,
	scale: "x",
	auto: !1,
	sorted: 1,
	min: _i,
	max: -Infinity,
	idxs: []
};
function mo(e, t, n, r, i) {
	return t.map((e) => e == null ? "" : ni(e));
}
function ho(e, t, n, r, i, a, o) {
	let s = [], c = Mi.get(i) || 0;
	n = o ? n : Q(Ai(n, i), c);
	for (let e = n; e <= r; e = Q(e + i, c)) s.push(Object.is(e, -0) ? 0 : e);
	return s;
}
function go(e, t, n, r, i, a, o) {
	let s = [], c = e.scales[e.axes[t].scale].log;
	i = di(c, oi((c == 10 ? pi : mi)(n))), c == 10 && (i = ya[zr(i, ya)]);
	let l = n, u = i * c;
	c == 10 && (u = ya[zr(u, ya)]);
	do
		s.push(l), l += i, c == 10 && !Mi.has(l) && (l = Q(l, Mi.get(i))), l >= u && (i = l, u = i * c, c == 10 && (u = ya[zr(u, ya)]));
	while (l <= r);
	return s;
}
function _o(e, t, n, r, i, a, o) {
	let s = e.scales[e.axes[t].scale].asinh, c = r > s ? go(e, t, ui(s, n), r, i) : [s], l = r >= 0 && n <= 0 ? [0] : [];
	return (n < -s ? go(e, t, ui(s, -r), -n, i) : [s]).reverse().map((e) => -e).concat(l, c);
}
var vo = /./, yo = /[12357]/, bo = /[125]/, xo = /1/, So = (e, t, n, r) => e.map((e, i) => t == 4 && e == 0 || i % r == 0 && n.test(e.toExponential()[+(e < 0)]) ? e : null);
function Co(e, t, n, r, i) {
	let a = e.axes[n], o = a.scale, s = e.scales[o], c = e.valToPos, l = a._space, u = c(10, o), d = c(9, o) - u >= l ? vo : c(7, o) - u >= l ? yo : c(5, o) - u >= l ? bo : xo;
	if (d == xo) {
		let e = ai(c(1, o) - u);
		if (e < l) return So(t.slice().reverse(), s.distr, d, ci(l / e)).reverse();
	}
	return So(t, s.distr, d, 1);
}
function wo(e, t, n, r, i) {
	let a = e.axes[n], o = a.scale, s = a._space, c = e.valToPos, l = ai(c(1, o) - c(2, o));
	return l < s ? So(t.slice().reverse(), 3, vo, ci(s / l)).reverse() : t;
}
function To(e, t, n, r) {
	return r == null ? vr : t == null ? "" : ni(t);
}
var Eo = {
	show: !0,
	scale: "y",
	stroke: or,
	space: 30,
	gap: 5,
	alignTo: 1,
	size: 50,
	labelGap: 0,
	labelSize: 30,
	labelFont: so,
	side: 3,
	grid: ro,
	ticks: io,
	border: ao,
	font: oo,
	lineGap: co,
	rotate: 0
};
function Do(e, t) {
	return Q((3 + (e || 1) * 2) * t, 3);
}
function Oo(e, t) {
	let { scale: n, idxs: r } = e.series[0], i = e._data[0], a = e.valToPos(i[r[0]], n, !0), o = ai(e.valToPos(i[r[1]], n, !0) - a) / (e.series[t].points.space * J);
	return r[1] - r[0] <= o;
}
var ko = {
	scale: null,
	auto: !0,
	sorted: 0,
	min: _i,
	max: -Infinity
}, Ao = (e, t, n, r, i) => i, jo = {
	show: !0,
	auto: !0,
	sorted: 0,
	gaps: Ao,
	alpha: 1,
	facets: [qi({}, ko, { scale: "x" }), qi({}, ko, { scale: "y" })]
}, Mo = {
	scale: "y",
	auto: !0,
	sorted: 0,
	show: !0,
	spanGaps: !1,
	gaps: Ao,
	alpha: 1,
	points: {
		show: Oo,
		filter: null
	},
	values: null,
	min: _i,
	max: -Infinity,
	idxs: [],
	path: null,
	clip: null
};
function No(e, t, n, r, i) {
	return n / 10;
}
var Po = {
	time: Nn,
	auto: !0,
	distr: 1,
	log: 10,
	asinh: 1,
	min: null,
	max: null,
	dir: 1,
	ori: 0
}, Fo = qi({}, Po, {
	time: !1,
	ori: 1
}), Io = {};
function Lo(e, t) {
	let n = Io[e];
	return n || (n = {
		key: e,
		plots: [],
		sub(e) {
			n.plots.push(e);
		},
		unsub(e) {
			n.plots = n.plots.filter((t) => t != e);
		},
		pub(e, t, r, i, a, o, s) {
			for (let c = 0; c < n.plots.length; c++) n.plots[c] != t && n.plots[c].pub(e, t, r, i, a, o, s);
		}
	}, e != null && (Io[e] = n)), n;
}
var Ro = 1, zo = 2;
function Bo(e, t, n) {
	let r = e.mode, i = e.series[t], a = r == 2 ? e._data[t] : e._data, o = e.scales, s = e.bbox, c = a[0], l = r == 2 ? a[1] : a[t], u = r == 2 ? o[i.facets[0].scale] : o[e.series[0].scale], d = r == 2 ? o[i.facets[1].scale] : o[i.scale], f = s.left, p = s.top, m = s.width, h = s.height, g = e.valToPosH, _ = e.valToPosV;
	return u.ori == 0 ? n(i, c, l, u, d, g, _, f, p, m, h, Yo, Zo, $o, ts, rs) : n(i, c, l, u, d, _, g, p, f, h, m, Xo, Qo, es, ns, is);
}
function Vo(e, t) {
	let n = 0, r = 0, i = X(e.bands, Ii);
	for (let e = 0; e < i.length; e++) {
		let a = i[e];
		a.series[0] == t ? n = a.dir : a.series[1] == t && (a.dir == 1 ? r |= 1 : r |= 2);
	}
	return [n, r == 1 ? -1 : r == 2 ? 1 : r == 3 ? 2 : 0];
}
function Ho(e, t, n, r, i) {
	let a = e.mode, o = e.series[t], s = a == 2 ? o.facets[1].scale : o.scale, c = e.scales[s];
	return i == -1 ? c.min : i == 1 ? c.max : c.distr == 3 ? c.dir == 1 ? c.min : c.max : 0;
}
function Uo(e, t, n, r, i, a) {
	return Bo(e, t, (e, t, o, s, c, l, u, d, f, p, m) => {
		let h = e.pxRound, g = s.dir * (s.ori == 0 ? 1 : -1), _ = s.ori == 0 ? Zo : Qo, v, y;
		g == 1 ? (v = n, y = r) : (v = r, y = n);
		let b = h(l(t[v], s, p, d)), x = h(u(o[v], c, m, f)), S = h(l(t[y], s, p, d)), C = h(u(a == 1 ? c.max : c.min, c, m, f)), w = new Path2D(i);
		return _(w, S, C), _(w, b, C), _(w, b, x), w;
	});
}
function Wo(e, t, n, r, i, a) {
	let o = null;
	if (e.length > 0) {
		o = new Path2D();
		let s = t == 0 ? $o : es, c = n;
		for (let t = 0; t < e.length; t++) {
			let n = e[t];
			if (n[1] > n[0]) {
				let e = n[0] - c;
				e > 0 && s(o, c, r, e, r + a), c = n[1];
			}
		}
		let l = n + i - c;
		l > 0 && s(o, c, r - 5, l, r + a + 10);
	}
	return o;
}
function Go(e, t, n) {
	let r = e[e.length - 1];
	r && r[0] == t ? r[1] = n : e.push([t, n]);
}
function Ko(e, t, n, r, i, a, o) {
	let s = [], c = e.length;
	for (let l = i == 1 ? n : r; l >= n && l <= r; l += i) if (t[l] === null) {
		let u = l, d = l;
		if (i == 1) for (; ++l <= r && t[l] === null;) d = l;
		else for (; --l >= n && t[l] === null;) d = l;
		let f = a(e[u]), p = d == u ? f : a(e[d]), m = u - i;
		f = o <= 0 && m >= 0 && m < c ? a(e[m]) : f;
		let h = d + i;
		p = o >= 0 && h >= 0 && h < c ? a(e[h]) : p, p >= f && s.push([f, p]);
	}
	return s;
}
function qo(e) {
	return e == 0 ? Si : e == 1 ? si : (t) => ki(t, e);
}
function Jo(e) {
	let t = e == 0 ? Yo : Xo, n = e == 0 ? (e, t, n, r, i, a) => {
		e.arcTo(t, n, r, i, a);
	} : (e, t, n, r, i, a) => {
		e.arcTo(n, t, i, r, a);
	}, r = e == 0 ? (e, t, n, r, i) => {
		e.rect(t, n, r, i);
	} : (e, t, n, r, i) => {
		e.rect(n, t, i, r);
	};
	return (e, i, a, o, s, c = 0, l = 0) => {
		c == 0 && l == 0 ? r(e, i, a, o, s) : (c = li(c, o / 2, s / 2), l = li(l, o / 2, s / 2), t(e, i + c, a), n(e, i + o, a, i + o, a + s, c), n(e, i + o, a + s, i, a + s, l), n(e, i, a + s, i, a, l), n(e, i, a, i + o, a, c), e.closePath());
	};
}
var Yo = (e, t, n) => {
	e.moveTo(t, n);
}, Xo = (e, t, n) => {
	e.moveTo(n, t);
}, Zo = (e, t, n) => {
	e.lineTo(t, n);
}, Qo = (e, t, n) => {
	e.lineTo(n, t);
}, $o = Jo(0), es = Jo(1), ts = (e, t, n, r, i, a) => {
	e.arc(t, n, r, i, a);
}, ns = (e, t, n, r, i, a) => {
	e.arc(n, t, r, i, a);
}, rs = (e, t, n, r, i, a, o) => {
	e.bezierCurveTo(t, n, r, i, a, o);
}, is = (e, t, n, r, i, a, o) => {
	e.bezierCurveTo(n, t, i, r, o, a);
};
function as(e) {
	return (e, t, n, r, i) => Bo(e, t, (t, a, o, s, c, l, u, d, f, p, m) => {
		let { pxRound: h, points: g } = t, _, v;
		s.ori == 0 ? (_ = Yo, v = ts) : (_ = Xo, v = ns);
		let y = Q(g.width * J, 3), b = (g.size - g.width) / 2 * J, x = Q(b * 2, 3), S = new Path2D(), C = new Path2D(), { left: w, top: T, width: E, height: D } = e.bbox;
		$o(C, w - x, T - x, E + x * 2, D + x * 2);
		let O = (e) => {
			if (o[e] != null) {
				let t = h(l(a[e], s, p, d)), n = h(u(o[e], c, m, f));
				_(S, t + b, n), v(S, t, n, b, 0, ii * 2);
			}
		};
		if (i) i.forEach(O);
		else for (let e = n; e <= r; e++) O(e);
		return {
			stroke: y > 0 ? S : null,
			fill: S,
			clip: C,
			flags: 3
		};
	});
}
function os(e) {
	return (t, n, r, i, a, o) => {
		r != i && (a != r && o != r && e(t, n, r), a != i && o != i && e(t, n, i), e(t, n, o));
	};
}
var ss = os(Zo), cs = os(Qo);
function ls(e) {
	let t = X(e?.alignGaps, 0);
	return (e, n, r, i) => Bo(e, n, (a, o, s, c, l, u, d, f, p, m, h) => {
		[r, i] = Ur(s, r, i);
		let g = a.pxRound, _ = (e) => g(u(e, c, m, f)), v = (e) => g(d(e, l, h, p)), y, b;
		c.ori == 0 ? (y = Zo, b = ss) : (y = Qo, b = cs);
		let x = c.dir * (c.ori == 0 ? 1 : -1), S = {
			stroke: new Path2D(),
			fill: null,
			clip: null,
			band: null,
			gaps: null,
			flags: Ro
		}, C = S.stroke, w = !1;
		if (i - r >= m * 4) {
			let t = (t) => e.posToVal(t, c.key, !0), n = null, a = null, l, u, d, f = _(o[x == 1 ? r : i]), p = _(o[r]), m = _(o[i]), h = t(x == 1 ? p + 1 : m - 1);
			for (let e = x == 1 ? r : i; e >= r && e <= i; e += x) {
				let r = o[e], i = (x == 1 ? r < h : r > h) ? f : _(r), c = s[e];
				i == f ? c == null ? c === null && (w = !0) : (u = c, n == null ? (y(C, i, v(u)), l = n = a = u) : u < n ? n = u : u > a && (a = u)) : (n != null && b(C, f, v(n), v(a), v(l), v(u)), c == null ? (n = a = null, c === null && (w = !0)) : (u = c, y(C, i, v(u)), n = a = l = u), f = i, h = t(f + x));
			}
			n != null && n != a && d != f && b(C, f, v(n), v(a), v(l), v(u));
		} else for (let e = x == 1 ? r : i; e >= r && e <= i; e += x) {
			let t = s[e];
			t === null ? w = !0 : t != null && y(C, _(o[e]), v(t));
		}
		let [T, E] = Vo(e, n);
		if (a.fill != null || T != 0) {
			let t = S.fill = new Path2D(C), s = v(a.fillTo(e, n, a.min, a.max, T)), c = _(o[r]), l = _(o[i]);
			x == -1 && ([l, c] = [c, l]), y(t, l, s), y(t, c, s);
		}
		if (!a.spanGaps) {
			let l = [];
			w && l.push(...Ko(o, s, r, i, x, _, t)), S.gaps = l = a.gaps(e, n, r, i, l), S.clip = Wo(l, c.ori, f, p, m, h);
		}
		return E != 0 && (S.band = E == 2 ? [Uo(e, n, r, i, C, -1), Uo(e, n, r, i, C, 1)] : Uo(e, n, r, i, C, E)), S;
	});
}
function us(e) {
	let t = X(e.align, 1), n = X(e.ascDesc, !1), r = X(e.alignGaps, 0), i = X(e.extend, !1);
	return (e, a, o, s) => Bo(e, a, (c, l, u, d, f, p, m, h, g, _, v) => {
		[o, s] = Ur(u, o, s);
		let y = c.pxRound, { left: b, width: x } = e.bbox, S = (e) => y(p(e, d, _, h)), C = (e) => y(m(e, f, v, g)), w = d.ori == 0 ? Zo : Qo, T = {
			stroke: new Path2D(),
			fill: null,
			clip: null,
			band: null,
			gaps: null,
			flags: Ro
		}, E = T.stroke, D = d.dir * (d.ori == 0 ? 1 : -1), O = C(u[D == 1 ? o : s]), k = S(l[D == 1 ? o : s]), A = k, j = k;
		i && t == -1 && (j = b, w(E, j, O)), w(E, k, O);
		for (let e = D == 1 ? o : s; e >= o && e <= s; e += D) {
			let n = u[e];
			if (n == null) continue;
			let r = S(l[e]), i = C(n);
			t == 1 ? w(E, r, O) : w(E, A, i), w(E, r, i), O = i, A = r;
		}
		let ee = A;
		i && t == 1 && (ee = b + x, w(E, ee, O));
		let [te, ne] = Vo(e, a);
		if (c.fill != null || te != 0) {
			let t = T.fill = new Path2D(E), n = C(c.fillTo(e, a, c.min, c.max, te));
			w(t, ee, n), w(t, j, n);
		}
		if (!c.spanGaps) {
			let i = [];
			i.push(...Ko(l, u, o, s, D, S, r));
			let f = c.width * J / 2, p = n || t == 1 ? f : -f, m = n || t == -1 ? -f : f;
			i.forEach((e) => {
				e[0] += p, e[1] += m;
			}), T.gaps = i = c.gaps(e, a, o, s, i), T.clip = Wo(i, d.ori, h, g, _, v);
		}
		return ne != 0 && (T.band = ne == 2 ? [Uo(e, a, o, s, E, -1), Uo(e, a, o, s, E, 1)] : Uo(e, a, o, s, E, ne)), T;
	});
}
function ds(e, t, n, r, i, a, o = _i) {
	if (e.length > 1) {
		let s = null;
		for (let c = 0, l = Infinity; c < e.length; c++) if (t[c] !== void 0) {
			if (s != null) {
				let t = ai(e[c] - e[s]);
				t < l && (l = t, o = ai(n(e[c], r, i, a) - n(e[s], r, i, a)));
			}
			s = c;
		}
	}
	return o;
}
function fs(e) {
	e ||= Fi;
	let t = X(e.size, [
		.6,
		_i,
		1
	]), n = e.align || 0, r = e.gap || 0, i = e.radius;
	i = i == null ? [0, 0] : typeof i == "number" ? [i, 0] : i;
	let a = Z(i), o = 1 - t[0], s = X(t[1], _i), c = X(t[2], 1), l = X(e.disp, Fi), u = X(e.each, (e) => {}), { fill: d, stroke: f } = l;
	return (e, t, i, p) => Bo(e, t, (m, h, g, _, v, y, b, x, S, C, w) => {
		let T = m.pxRound, E = n, D = r * J, O = s * J, k = c * J, A, j;
		_.ori == 0 ? [A, j] = a(e, t) : [j, A] = a(e, t);
		let ee = _.dir * (_.ori == 0 ? 1 : -1), te = _.ori == 0 ? $o : es, ne = _.ori == 0 ? u : (e, t, n, r, i, a, o) => {
			u(e, t, n, i, r, o, a);
		}, re = X(e.bands, Ii).find((e) => e.series[0] == t), ie = re == null ? 0 : re.dir, ae = m.fillTo(e, t, m.min, m.max, ie), M = T(b(ae, v, w, S)), N, P, oe, F = C, I = T(m.width * J), se = !1, L = null, ce = null, le = null, ue = null;
		d != null && (I == 0 || f != null) && (se = !0, L = d.values(e, t, i, p), ce = /* @__PURE__ */ new Map(), new Set(L).forEach((e) => {
			e != null && ce.set(e, new Path2D());
		}), I > 0 && (le = f.values(e, t, i, p), ue = /* @__PURE__ */ new Map(), new Set(le).forEach((e) => {
			e != null && ue.set(e, new Path2D());
		})));
		let { x0: de, size: fe } = l;
		if (de != null && fe != null) {
			E = 1, h = de.values(e, t, i, p), de.unit == 2 && (h = h.map((t) => e.posToVal(x + t * C, _.key, !0)));
			let n = fe.values(e, t, i, p);
			P = fe.unit == 2 ? n[0] * C : y(n[0], _, C, x) - y(0, _, C, x), F = ds(h, g, y, _, C, x, F), oe = F - P + D;
		} else F = ds(h, g, y, _, C, x, F), oe = F * o + D, P = F - oe;
		oe < 1 && (oe = 0), I >= P / 2 && (I = 0), oe < 5 && (T = Si);
		let pe = oe > 0, R = F - oe - (pe ? I : 0);
		P = T(yi(R, k, O)), N = (E == 0 ? P / 2 : E == ee ? 0 : P) - E * ee * ((E == 0 ? D / 2 : 0) + (pe ? I / 2 : 0));
		let me = {
			stroke: null,
			fill: null,
			clip: null,
			band: null,
			gaps: null,
			flags: 0
		}, he = se ? null : new Path2D(), ge = null;
		if (re != null) ge = e.data[re.series[1]];
		else {
			let { y0: n, y1: r } = l;
			n != null && r != null && (g = r.values(e, t, i, p), ge = n.values(e, t, i, p));
		}
		let _e = A * P, ve = j * P;
		for (let n = ee == 1 ? i : p; n >= i && n <= p; n += ee) {
			let r = g[n];
			if (r == null) continue;
			if (ge != null) {
				let e = ge[n] ?? 0;
				if (r - e == 0) continue;
				M = b(e, v, w, S);
			}
			let i = y(_.distr != 2 || l != null ? h[n] : n, _, C, x), a = b(X(r, ae), v, w, S), o = T(i - N), s = T(ui(a, M)), c = T(li(a, M)), u = s - c;
			if (r != null) {
				let i = r < 0 ? ve : _e, a = r < 0 ? _e : ve;
				se ? (I > 0 && le[n] != null && te(ue.get(le[n]), o, c + oi(I / 2), P, ui(0, u - I), i, a), L[n] != null && te(ce.get(L[n]), o, c + oi(I / 2), P, ui(0, u - I), i, a)) : te(he, o, c + oi(I / 2), P, ui(0, u - I), i, a), ne(e, t, n, o - I / 2, c, P + I, u);
			}
		}
		return I > 0 ? me.stroke = se ? ue : he : se || (me._fill = m.width == 0 ? m._fill : m._stroke ?? m._fill, me.width = 0), me.fill = se ? ce : he, me;
	});
}
function ps(e, t) {
	let n = X(t?.alignGaps, 0);
	return (t, r, i, a) => Bo(t, r, (o, s, c, l, u, d, f, p, m, h, g) => {
		[i, a] = Ur(c, i, a);
		let _ = o.pxRound, v = (e) => _(d(e, l, h, p)), y = (e) => _(f(e, u, g, m)), b, x, S;
		l.ori == 0 ? (b = Yo, S = Zo, x = rs) : (b = Xo, S = Qo, x = is);
		let C = l.dir * (l.ori == 0 ? 1 : -1), w = v(s[C == 1 ? i : a]), T = w, E = [], D = [];
		for (let e = C == 1 ? i : a; e >= i && e <= a; e += C) if (c[e] != null) {
			let t = s[e], n = v(t);
			E.push(T = n), D.push(y(c[e]));
		}
		let O = {
			stroke: e(E, D, b, S, x, _),
			fill: null,
			clip: null,
			band: null,
			gaps: null,
			flags: Ro
		}, k = O.stroke, [A, j] = Vo(t, r);
		if (o.fill != null || A != 0) {
			let e = O.fill = new Path2D(k), n = y(o.fillTo(t, r, o.min, o.max, A));
			S(e, T, n), S(e, w, n);
		}
		if (!o.spanGaps) {
			let e = [];
			e.push(...Ko(s, c, i, a, C, v, n)), O.gaps = e = o.gaps(t, r, i, a, e), O.clip = Wo(e, l.ori, p, m, h, g);
		}
		return j != 0 && (O.band = j == 2 ? [Uo(t, r, i, a, k, -1), Uo(t, r, i, a, k, 1)] : Uo(t, r, i, a, k, j)), O;
	});
}
function ms(e) {
	return ps(hs, e);
}
function hs(e, t, n, r, i, a) {
	let o = e.length;
	if (o < 2) return null;
	let s = new Path2D();
	if (n(s, e[0], t[0]), o == 2) r(s, e[1], t[1]);
	else {
		let n = Array(o), r = Array(o - 1), a = Array(o - 1), c = Array(o - 1);
		for (let n = 0; n < o - 1; n++) a[n] = t[n + 1] - t[n], c[n] = e[n + 1] - e[n], r[n] = a[n] / c[n];
		n[0] = r[0];
		for (let e = 1; e < o - 1; e++) r[e] === 0 || r[e - 1] === 0 || r[e - 1] > 0 != r[e] > 0 ? n[e] = 0 : (n[e] = 3 * (c[e - 1] + c[e]) / ((2 * c[e] + c[e - 1]) / r[e - 1] + (c[e] + 2 * c[e - 1]) / r[e]), isFinite(n[e]) || (n[e] = 0));
		n[o - 1] = r[o - 2];
		for (let r = 0; r < o - 1; r++) i(s, e[r] + c[r] / 3, t[r] + n[r] * c[r] / 3, e[r + 1] - c[r] / 3, t[r + 1] - n[r + 1] * c[r] / 3, e[r + 1], t[r + 1]);
	}
	return s;
}
var gs = /* @__PURE__ */ new Set();
function _s() {
	for (let e of gs) e.syncRect(!0);
}
yr && (Lr(mr, xr, _s), Lr(hr, xr, _s, !0), Lr(_r, xr, () => {
	Ns.pxRatio = J;
}));
var vs = ls(), ys = as();
function bs(e, t, n, r) {
	return (r ? [e[0], e[1]].concat(e.slice(2)) : [e[0]].concat(e.slice(1))).map((e, r) => Ss(e, r, t, n));
}
function xs(e, t) {
	return e.map((e, n) => n == 0 ? {} : qi({}, t, e));
}
function Ss(e, t, n, r) {
	return qi({}, t == 0 ? n : r, e);
}
function Cs(e, t, n) {
	return t == null ? Li : [t, n];
}
var ws = Cs;
function Ts(e, t, n) {
	return t == null ? Li : Qr(t, n, Jr, !0);
}
function Es(e, t, n, r) {
	return t == null ? Li : Kr(t, n, e.scales[r].log, !1);
}
var Ds = Es;
function Os(e, t, n, r) {
	return t == null ? Li : qr(t, n, e.scales[r].log, !1);
}
var ks = Os;
function As(e, t, n, r, i) {
	let a = ui(vi(e), vi(t)), o = t - e, s = zr(i / r * o, n);
	do {
		let e = n[s], t = r * e / o;
		if (t >= i && a + (e < 5 ? Mi.get(e) : 0) <= 17) return [e, t];
	} while (++s < n.length);
	return [0, 0];
}
function js(e) {
	let t, n;
	return e = e.replace(/(\d+)px/, (e, r) => (t = si((n = +r) * J)) + "px"), [
		e,
		t,
		n
	];
}
function Ms(e) {
	e.show && [e.font, e.labelFont].forEach((e) => {
		let t = Q(e[2] * J, 1);
		e[0] = e[0].replace(/[0-9.]+px/, t + "px"), e[1] = t;
	});
}
function Ns(e, t, n) {
	let r = { mode: X(e.mode, 1) }, i = r.mode;
	function a(e, t, n, r) {
		let i = t.valToPct(e);
		return r + n * (t.dir == -1 ? 1 - i : i);
	}
	function o(e, t, n, r) {
		let i = t.valToPct(e);
		return r + n * (t.dir == -1 ? i : 1 - i);
	}
	function s(e, t, n, r) {
		return t.ori == 0 ? a(e, t, n, r) : o(e, t, n, r);
	}
	r.valToPosH = a, r.valToPosV = o;
	let c = !1;
	r.status = 0;
	let l = r.root = Or(Pn);
	if (e.id != null && (l.id = e.id), Tr(l, e.class), e.title) {
		let t = Or(Ln, l);
		t.textContent = e.title;
	}
	let u = Dr("canvas"), d = r.ctx = u.getContext("2d"), f = Or(Rn, l);
	Lr("click", f, (e) => {
		e.target === m && (G != $t || K != en) && an.click(r, e);
	}, !0);
	let p = r.under = Or(zn, f);
	f.appendChild(u);
	let m = r.over = Or(Bn, f);
	e = Ki(e);
	let h = +X(e.pxAlign, 1), g = qo(h);
	(e.plugins || []).forEach((t) => {
		t.opts && (e = t.opts(r, e) || e);
	});
	let _ = e.ms || .001, v = r.series = i == 1 ? bs(e.series || [], po, Mo, !1) : xs(e.series || [null], jo), y = r.axes = bs(e.axes || [], lo, Eo, !0), b = r.scales = {}, x = r.bands = e.bands || [];
	x.forEach((e) => {
		e.fill = Z(e.fill || null), e.dir = X(e.dir, -1);
	});
	let S = i == 2 ? v[1].facets[0].scale : v[0].scale, C = {
		axes: Lt,
		series: Et
	}, w = (e.drawOrder || ["axes", "series"]).map((e) => C[e]);
	function T(e) {
		let t = e.distr == 3 ? (t) => pi(t > 0 ? t : e.clamp(r, t, e.min, e.max, e.key)) : e.distr == 4 ? (t) => gi(t, e.asinh) : e.distr == 100 ? (t) => e.fwd(t) : (e) => e;
		return (n) => {
			let r = t(n), { _min: i, _max: a } = e, o = a - i;
			return (r - i) / o;
		};
	}
	function E(t) {
		let n = b[t];
		if (n == null) {
			let r = (e.scales || Fi)[t] || Fi;
			if (r.from != null) {
				E(r.from);
				let e = qi({}, b[r.from], r, { key: t });
				e.valToPct = T(e), b[t] = e;
			} else {
				n = b[t] = qi({}, t == S ? Po : Fo, r), n.key = t;
				let e = n.time, a = n.range, o = Ri(a);
				if ((t != S || i == 2 && !e) && (o && (a[0] == null || a[1] == null) && (a = {
					min: a[0] == null ? Yr : {
						mode: 1,
						hard: a[0],
						soft: a[0]
					},
					max: a[1] == null ? Yr : {
						mode: 1,
						hard: a[1],
						soft: a[1]
					}
				}, o = !1), !o && Hi(a))) {
					let e = a;
					a = (t, n, r) => n == null ? Li : Qr(n, r, e);
				}
				n.range = Z(a || (e ? ws : t == S ? n.distr == 3 ? Ds : n.distr == 4 ? ks : Cs : n.distr == 3 ? Es : n.distr == 4 ? Os : Ts)), n.auto = Z(!o && n.auto), n.clamp = Z(n.clamp || No), n._min = n._max = null, n.valToPct = T(n);
			}
		}
	}
	E("x"), E("y"), i == 1 && v.forEach((e) => {
		E(e.scale);
	}), y.forEach((e) => {
		E(e.scale);
	});
	for (let t in e.scales) E(t);
	let D = b[S], O = D.distr, k, A;
	D.ori == 0 ? (Tr(l, Fn), k = a, A = o) : (Tr(l, In), k = o, A = a);
	let j = {};
	for (let e in b) {
		let t = b[e];
		(t.min != null || t.max != null) && (j[e] = {
			min: t.min,
			max: t.max
		}, t.min = t.max = null);
	}
	let ee = e.tzDate || ((e) => new Date(si(e / _))), te = e.fmtDate || da, ne = _ == 1 ? Na(ee) : Ia(ee), re = Ra(ee, La(_ == 1 ? Ma : Fa, te)), ie = Ua(ee, Va(Ha, te)), ae = [], M = r.legend = qi({}, Ka, e.legend), N = r.cursor = qi({}, to, { drag: { y: i == 2 } }, e.cursor), P = M.show, oe = N.show, F = M.markers;
	M.idxs = ae, F.width = Z(F.width), F.dash = Z(F.dash), F.stroke = Z(F.stroke), F.fill = Z(F.fill);
	let I, se, L, ce = [], le = [], ue, de = !1, fe = {};
	if (M.live) {
		let e = v[1] ? v[1].values : null;
		de = e != null, ue = de ? e(r, 1, 0) : { _: 0 };
		for (let e in ue) fe[e] = vr;
	}
	if (P) {
		if (I = Dr("table", qn, l), L = Dr("tbody", null, I), M.mount(r, I), de) {
			se = Dr("thead", null, I, L);
			let e = Dr("tr", null, se);
			for (var pe in Dr("th", null, e), ue) Dr("th", Qn, e).textContent = pe;
		} else Tr(I, Yn), M.live && Tr(I, Jn);
	}
	let R = { show: !0 }, me = { show: !1 };
	function he(e, t) {
		if (t == 0 && (de || !M.live || i == 2)) return Li;
		let n = [], a = Dr("tr", Xn, L, L.childNodes[t]);
		Tr(a, e.class), e.show || Tr(a, Hn);
		let o = Dr("th", null, a);
		if (F.show) {
			let e = Or(Zn, o);
			if (t > 0) {
				let n = F.width(r, t);
				n && (e.style.border = n + "px " + F.dash(r, t) + " " + F.stroke(r, t)), e.style.background = F.fill(r, t);
			}
		}
		let s = Or(Qn, o);
		for (var c in e.label instanceof HTMLElement ? s.appendChild(e.label) : s.textContent = e.label, t > 0 && (F.show || (s.style.color = e.width > 0 ? F.stroke(r, t) : F.fill(r, t)), _e("click", o, (t) => {
			if (N._lock) return;
			He(t);
			let n = v.indexOf(e);
			if ((t.ctrlKey || t.metaKey) != M.isolate) {
				let e = v.some((e, t) => t > 0 && t != n && e.show);
				v.forEach((t, r) => {
					r > 0 && fn(r, e ? r == n ? R : me : R, !0, Wr.setSeries);
				});
			} else fn(n, { show: !e.show }, !0, Wr.setSeries);
		}, !1), Ge && _e(dr, o, (t) => {
			N._lock || (He(t), fn(v.indexOf(e), bn, !0, Wr.setSeries));
		}, !1)), ue) {
			let e = Dr("td", $n, a);
			e.textContent = "--", n.push(e);
		}
		return [a, n];
	}
	let ge = /* @__PURE__ */ new Map();
	function _e(e, t, n, i = !0) {
		let a = ge.get(t) || {}, o = N.bind[e](r, t, n, i);
		o && (Lr(e, t, a[e] = o), ge.set(t, a));
	}
	function ve(e, t, n) {
		let r = ge.get(t) || {};
		for (let n in r) (e == null || n == e) && (Rr(n, t, r[n]), delete r[n]);
		e ?? ge.delete(t);
	}
	let ye = 0, be = 0, z = 0, B = 0, xe = 0, Se = 0, Ce = xe, we = Se, Te = z, Ee = B, De = 0, Oe = 0, ke = 0, Ae = 0;
	r.bbox = {};
	let je = !1, Me = !1, Ne = !1, Pe = !1, Fe = !1, Ie = !1;
	function Le(e, t, n) {
		(n || e != r.width || t != r.height) && V(e, t), Rt(!1), Ne = !0, Me = !0, Ut();
	}
	function V(e, t) {
		r.width = ye = z = e, r.height = be = B = t, xe = Se = 0, Be(), Ve();
		let n = r.bbox;
		De = n.left = ki(xe * J, .5), Oe = n.top = ki(Se * J, .5), ke = n.width = ki(z * J, .5), Ae = n.height = ki(B * J, .5);
	}
	function Re() {
		let e = !1, t = 0;
		for (; !e;) {
			t++;
			let n = Ft(t), i = It(t);
			e = t == 3 || n && i, e || (V(r.width, r.height), Me = !0);
		}
	}
	function ze({ width: e, height: t }) {
		Le(e, t);
	}
	r.setSize = ze;
	function Be() {
		let e = !1, t = !1, n = !1, r = !1;
		y.forEach((i, a) => {
			if (i.show && i._show) {
				let { side: a, _size: o } = i, s = a % 2, c = o + (i.label == null ? 0 : i.labelSize);
				c > 0 && (s ? (z -= c, a == 3 ? (xe += c, r = !0) : n = !0) : (B -= c, a == 0 ? (Se += c, e = !0) : t = !0));
			}
		}), Qe[0] = e, Qe[1] = n, Qe[2] = t, Qe[3] = r, z -= nt[1] + nt[3], xe += nt[3], B -= nt[2] + nt[0], Se += nt[0];
	}
	function Ve() {
		let e = xe + z, t = Se + B, n = xe, r = Se;
		function i(i, a) {
			switch (i) {
				case 1: return e += a, e - a;
				case 2: return t += a, t - a;
				case 3: return n -= a, n + a;
				case 0: return r -= a, r + a;
			}
		}
		y.forEach((e, t) => {
			if (e.show && e._show) {
				let t = e.side;
				e._pos = i(t, e._size), e.label != null && (e._lpos = i(t, e.labelSize));
			}
		});
	}
	if (N.dataIdx == null) {
		let e = N.hover, n = e.skip = new Set(e.skip ?? []);
		n.add(void 0);
		let r = e.prox = Z(e.prox), i = e.bias ??= 0;
		N.dataIdx = (e, a, o, s) => {
			if (a == 0) return o;
			let c = o, l = r(e, a, o, s) ?? _i, u = l >= 0 && l < _i, d = D.ori == 0 ? z : B, f = N.left, p = t[0], m = t[a];
			if (n.has(m[o])) {
				c = null;
				let e = null, t = null, r;
				if (i == 0 || i == -1) for (r = o; e == null && r-- > 0;) n.has(m[r]) || (e = r);
				if (i == 0 || i == 1) for (r = o; t == null && r++ < m.length;) n.has(m[r]) || (t = r);
				if (e != null || t != null) {
					if (u) {
						let n = e == null ? -Infinity : k(p[e], D, d, 0), r = t == null ? Infinity : k(p[t], D, d, 0), i = f - n, a = r - f;
						i <= a ? i <= l && (c = e) : a <= l && (c = t);
					} else c = t == null ? e : e == null ? t : o - e <= t - o ? e : t;
				}
			} else u && ai(f - k(p[o], D, d, 0)) > l && (c = null);
			return c;
		};
	}
	let He = (e) => {
		N.event = e;
	};
	N.idxs = ae, N._lock = !1;
	let Ue = N.points;
	Ue.show = Z(Ue.show), Ue.size = Z(Ue.size), Ue.stroke = Z(Ue.stroke), Ue.width = Z(Ue.width), Ue.fill = Z(Ue.fill);
	let We = r.focus = qi({}, e.focus || { alpha: .3 }, N.focus), Ge = We.prox >= 0, Ke = Ge && Ue.one, H = [], U = [], qe = [];
	function Je(e, t) {
		let n = Ue.show(r, t);
		if (n instanceof HTMLElement) return Tr(n, Kn), Tr(n, e.class), Ar(n, -10, -10, z, B), m.insertBefore(n, H[t]), n;
	}
	function Ye(e, t) {
		if (i == 1 || t > 0) {
			let t = i == 1 && b[e.scale].time, n = e.value;
			e.value = t ? Vi(n) ? Ua(ee, Va(n, te)) : n || ie : n || To, e.label = e.label || (t ? fo : uo);
		}
		if (Ke || t > 0) {
			e.width = e.width == null ? 1 : e.width, e.paths = e.paths || vs || wi, e.fillTo = Z(e.fillTo || Ho), e.pxAlign = +X(e.pxAlign, h), e.pxRound = qo(e.pxAlign), e.stroke = Z(e.stroke || null), e.fill = Z(e.fill || null), e._stroke = e._fill = e._paths = e._focus = null;
			let t = Do(ui(1, e.width), 1), n = e.points = qi({}, {
				size: t,
				width: ui(1, t * .2),
				stroke: e.stroke,
				space: t * 2,
				paths: ys,
				_stroke: null,
				_fill: null
			}, e.points);
			n.show = Z(n.show), n.filter = Z(n.filter), n.fill = Z(n.fill), n.stroke = Z(n.stroke), n.paths = Z(n.paths), n.pxAlign = e.pxAlign;
		}
		if (P) {
			let n = he(e, t);
			ce.splice(t, 0, n[0]), le.splice(t, 0, n[1]), M.values.push(null);
		}
		if (oe) {
			ae.splice(t, 0, null);
			let n = null;
			Ke ? t == 0 && (n = Je(e, t)) : t > 0 && (n = Je(e, t)), H.splice(t, 0, n), U.splice(t, 0, 0), qe.splice(t, 0, 0);
		}
		Hr("addSeries", t);
	}
	function Xe(e, t) {
		t ??= v.length, e = i == 1 ? Ss(e, t, po, Mo) : Ss(e, t, {}, jo), v.splice(t, 0, e), Ye(v[t], t);
	}
	r.addSeries = Xe;
	function Ze(e) {
		if (v.splice(e, 1), P) {
			M.values.splice(e, 1), le.splice(e, 1);
			let t = ce.splice(e, 1)[0];
			ve(null, t.firstChild), t.remove();
		}
		oe && (ae.splice(e, 1), H.splice(e, 1)[0].remove(), U.splice(e, 1), qe.splice(e, 1)), Hr("delSeries", e);
	}
	r.delSeries = Ze;
	let Qe = [
		!1,
		!1,
		!1,
		!1
	];
	function $e(e, t) {
		if (e._show = e.show, e.show) {
			let n = e.side % 2, i = b[e.scale];
			i ??= (e.scale = n ? v[1].scale : S, b[e.scale]);
			let a = i.time;
			e.size = Z(e.size), e.space = Z(e.space), e.rotate = Z(e.rotate), Ri(e.incrs) && e.incrs.forEach((e) => {
				!Mi.has(e) && Mi.set(e, Ni(e));
			}), e.incrs = Z(e.incrs || (i.distr == 2 ? va : a ? _ == 1 ? ja : Pa : ya)), e.splits = Z(e.splits || (a && i.distr == 1 ? ne : i.distr == 3 ? go : i.distr == 4 ? _o : ho)), e.stroke = Z(e.stroke), e.grid.stroke = Z(e.grid.stroke), e.ticks.stroke = Z(e.ticks.stroke), e.border.stroke = Z(e.border.stroke);
			let o = e.values;
			e.values = Ri(o) && !Ri(o[0]) ? Z(o) : a ? Ri(o) ? Ra(ee, La(o, te)) : Vi(o) ? za(ee, o) : o || re : o || mo, e.filter = Z(e.filter || (i.distr >= 3 && i.log == 10 ? Co : i.distr == 3 && i.log == 2 ? wo : Ci)), e.font = js(e.font), e.labelFont = js(e.labelFont), e._size = e.size(r, null, t, 0), e._space = e._rotate = e._incrs = e._found = e._splits = e._values = null, e._size > 0 && (Qe[t] = !0, e._el = Or(Vn, f));
		}
	}
	function et(e, t, n, r) {
		let [i, a, o, s] = n, c = t % 2, l = 0;
		return c == 0 && (s || a) && (l = t == 0 && !i || t == 2 && !o ? si(lo.size / 3) : 0), c == 1 && (i || o) && (l = t == 1 && !a || t == 3 && !s ? si(Eo.size / 2) : 0), l;
	}
	let tt = r.padding = (e.padding || [
		et,
		et,
		et,
		et
	]).map((e) => Z(X(e, et))), nt = r._padding = tt.map((e, t) => e(r, t, Qe, 0)), rt, W = null, it = null, at = i == 1 ? v[0].idxs : null, ot = null, st = !1;
	function ct(e, n) {
		if (t = e ?? [], r.data = r._data = t, i == 2) {
			rt = 0;
			for (let e = 1; e < v.length; e++) rt += t[e][0].length;
		} else {
			t.length == 0 && (r.data = r._data = t = [[]]), ot = t[0], rt = ot.length;
			let e = t;
			if (O == 2) {
				e = t.slice();
				let n = e[0] = Array(rt);
				for (let e = 0; e < rt; e++) n[e] = e;
			}
			r._data = t = e;
		}
		if (Rt(!0), Hr("setData"), O == 2 && (Ne = !0), n !== !1) {
			let e = D;
			e.auto(r, st) ? lt() : dn(S, e.min, e.max), Pe ||= N.left >= 0, Ie = !0, Ut();
		}
	}
	r.setData = ct;
	function lt() {
		st = !0;
		let e, n;
		i == 1 && (rt > 0 ? (W = at[0] = 0, it = at[1] = rt - 1, e = t[0][W], n = t[0][it], O == 2 ? (e = W, n = it) : e == n && (O == 3 ? [e, n] = Kr(e, e, D.log, !1) : O == 4 ? [e, n] = qr(e, e, D.log, !1) : D.time ? n = e + si(86400 / _) : [e, n] = Qr(e, n, Jr, !0))) : (W = at[0] = e = null, it = at[1] = n = null)), dn(S, e, n);
	}
	let ut, dt, ft, pt, mt, ht, gt, _t, vt, yt;
	function bt(e, t, n, r, i, a) {
		e ??= sr, n ??= Ii, r ??= "butt", i ??= sr, a ??= "round", e != ut && (d.strokeStyle = ut = e), i != dt && (d.fillStyle = dt = i), t != ft && (d.lineWidth = ft = t), a != mt && (d.lineJoin = mt = a), r != ht && (d.lineCap = ht = r), n != pt && d.setLineDash(pt = n);
	}
	function xt(e, t, n, r) {
		t != dt && (d.fillStyle = dt = t), e != gt && (d.font = gt = e), n != _t && (d.textAlign = _t = n), r != vt && (d.textBaseline = vt = r);
	}
	function St(e, t, n, i, a = 0) {
		if (i.length > 0 && e.auto(r, st) && (t == null || t.min == null)) {
			let t = X(W, 0), r = X(it, i.length - 1), o = n.min == null ? Gr(i, t, r, a, e.distr == 3) : [n.min, n.max];
			e.min = li(e.min, n.min = o[0]), e.max = ui(e.max, n.max = o[1]);
		}
	}
	let Ct = {
		min: null,
		max: null
	};
	function wt() {
		for (let e in b) {
			let t = b[e];
			j[e] == null && (t.min == null || j[S] != null && t.auto(r, st)) && (j[e] = Ct);
		}
		for (let e in b) {
			let t = b[e];
			j[e] == null && t.from != null && j[t.from] != null && (j[e] = Ct);
		}
		j[S] != null && Rt(!0);
		let e = {};
		for (let t in j) {
			let n = j[t];
			if (n != null) {
				let a = e[t] = Ki(b[t], Ui);
				if (n.min != null) qi(a, n);
				else if (t != S || i == 2) {
					if (rt == 0 && a.from == null) {
						let e = a.range(r, null, null, t);
						a.min = e[0], a.max = e[1];
					} else a.min = _i, a.max = -Infinity;
				}
			}
		}
		if (rt > 0) {
			v.forEach((n, a) => {
				if (i == 1) {
					let i = n.scale, o = j[i];
					if (o == null) return;
					let s = e[i];
					if (a == 0) {
						let e = s.range(r, s.min, s.max, i);
						s.min = e[0], s.max = e[1], W = zr(s.min, t[0]), it = zr(s.max, t[0]), it - W > 1 && (t[0][W] < s.min && W++, t[0][it] > s.max && it--), n.min = ot[W], n.max = ot[it];
					} else n.show && n.auto && St(s, o, n, t[a], n.sorted);
					n.idxs[0] = W, n.idxs[1] = it;
				} else if (a > 0 && n.show && n.auto) {
					let [r, i] = n.facets, o = r.scale, s = i.scale, [c, l] = t[a], u = e[o], d = e[s];
					u != null && St(u, j[o], r, c, r.sorted), d != null && St(d, j[s], i, l, i.sorted), n.min = i.min, n.max = i.max;
				}
			});
			for (let t in e) {
				let n = e[t], i = j[t];
				if (n.from == null && (i == null || i.min == null)) {
					let e = n.range(r, n.min == _i ? null : n.min, n.max == -Infinity ? null : n.max, t);
					n.min = e[0], n.max = e[1];
				}
			}
		}
		for (let t in e) {
			let n = e[t];
			if (n.from != null) {
				let i = e[n.from];
				if (i.min == null) n.min = n.max = null;
				else {
					let e = n.range(r, i.min, i.max, t);
					n.min = e[0], n.max = e[1];
				}
			}
		}
		let n = {}, a = !1;
		for (let t in e) {
			let r = e[t], i = b[t];
			if (i.min != r.min || i.max != r.max) {
				i.min = r.min, i.max = r.max;
				let e = i.distr;
				i._min = e == 3 ? pi(i.min) : e == 4 ? gi(i.min, i.asinh) : e == 100 ? i.fwd(i.min) : i.min, i._max = e == 3 ? pi(i.max) : e == 4 ? gi(i.max, i.asinh) : e == 100 ? i.fwd(i.max) : i.max, n[t] = a = !0;
			}
		}
		if (a) {
			v.forEach((e, t) => {
				i == 2 ? t > 0 && n.y && (e._paths = null) : n[e.scale] && (e._paths = null);
			});
			for (let e in n) Ne = !0, Hr("setScale", e);
			oe && N.left >= 0 && (Pe = Ie = !0);
		}
		for (let e in j) j[e] = null;
	}
	function Tt(e) {
		let t = yi(W - 1, 0, rt - 1), n = yi(it + 1, 0, rt - 1);
		for (; e[t] == null && t > 0;) t--;
		for (; e[n] == null && n < rt - 1;) n++;
		return [t, n];
	}
	function Et() {
		if (rt > 0) {
			let e = v.some((e) => e._focus) && yt != We.alpha;
			e && (d.globalAlpha = yt = We.alpha), v.forEach((e, n) => {
				if (n > 0 && e.show && (Dt(n, !1), Dt(n, !0), e._paths == null)) {
					let a = yt;
					yt != e.alpha && (d.globalAlpha = yt = e.alpha);
					let o = i == 2 ? [0, t[n][0].length - 1] : Tt(t[n]);
					e._paths = e.paths(r, n, o[0], o[1]), yt != a && (d.globalAlpha = yt = a);
				}
			}), v.forEach((e, t) => {
				if (t > 0 && e.show) {
					let n = yt;
					yt != e.alpha && (d.globalAlpha = yt = e.alpha), e._paths != null && Ot(t, !1);
					{
						let n = e._paths == null ? null : e._paths.gaps, i = e.points.show(r, t, W, it, n), a = e.points.filter(r, t, i, n);
						(i || a) && (e.points._paths = e.points.paths(r, t, W, it, a), Ot(t, !0));
					}
					yt != n && (d.globalAlpha = yt = n), Hr("drawSeries", t);
				}
			}), e && (d.globalAlpha = yt = 1);
		}
	}
	function Dt(e, t) {
		let n = t ? v[e].points : v[e];
		n._stroke = n.stroke(r, e), n._fill = n.fill(r, e);
	}
	function Ot(e, t) {
		let n = t ? v[e].points : v[e], { stroke: r, fill: i, clip: a, flags: o, _stroke: s = n._stroke, _fill: c = n._fill, _width: l = n.width } = n._paths;
		l = Q(l * J, 3);
		let u = null, f = l % 2 / 2;
		t && c == null && (c = l > 0 ? "#fff" : s);
		let p = n.pxAlign == 1 && f > 0;
		if (p && d.translate(f, f), !t) {
			let e = De - l / 2, t = Oe - l / 2, n = ke + l, r = Ae + l;
			u = new Path2D(), u.rect(e, t, n, r);
		}
		t ? At(s, l, n.dash, n.cap, c, r, i, o, a) : kt(e, s, l, n.dash, n.cap, c, r, i, o, u, a), p && d.translate(-f, -f);
	}
	function kt(e, n, i, a, o, s, c, l, u, d, f) {
		let p = !1;
		u != 0 && x.forEach((m, h) => {
			if (m.series[0] == e) {
				let e = v[m.series[1]], g = t[m.series[1]], _ = (e._paths || Fi).band;
				Ri(_) && (_ = m.dir == 1 ? _[0] : _[1]);
				let y, b = null;
				e.show && _ && $r(g, W, it) ? (b = m.fill(r, h) || s, y = e._paths.clip) : _ = null, At(n, i, a, o, b, c, l, u, d, f, y, _), p = !0;
			}
		}), p || At(n, i, a, o, s, c, l, u, d, f);
	}
	function At(e, t, n, r, i, a, o, s, c, l, u, f) {
		bt(e, t, n, r, i), (c || l || f) && (d.save(), c && d.clip(c), l && d.clip(l)), f ? (s & 3) == 3 ? (d.clip(f), u && d.clip(u), Mt(i, o), jt(e, a, t)) : s & zo ? (Mt(i, o), d.clip(f), jt(e, a, t)) : s & Ro && (d.save(), d.clip(f), u && d.clip(u), Mt(i, o), d.restore(), jt(e, a, t)) : (Mt(i, o), jt(e, a, t)), (c || l || f) && d.restore();
	}
	function jt(e, t, n) {
		n > 0 && (t instanceof Map ? t.forEach((e, t) => {
			d.strokeStyle = ut = t, d.stroke(e);
		}) : t != null && e && d.stroke(t));
	}
	function Mt(e, t) {
		t instanceof Map ? t.forEach((e, t) => {
			d.fillStyle = dt = t, d.fill(e);
		}) : t != null && e && d.fill(t);
	}
	function Nt(e, t, n, i) {
		let a = y[e], o;
		if (i <= 0) o = [0, 0];
		else {
			let s = a._space = a.space(r, e, t, n, i);
			o = As(t, n, a._incrs = a.incrs(r, e, t, n, i, s), i, s);
		}
		return a._found = o;
	}
	function Pt(e, t, n, r, i, a, o, s, c, l) {
		let u = o % 2 / 2;
		h == 1 && d.translate(u, u), bt(s, o, c, l, s), d.beginPath();
		let f, p, m, g, _ = i + (r == 0 || r == 3 ? -a : a);
		n == 0 ? (p = i, g = _) : (f = i, m = _);
		for (let r = 0; r < e.length; r++) t[r] != null && (n == 0 ? f = m = e[r] : p = g = e[r], d.moveTo(f, p), d.lineTo(m, g));
		d.stroke(), h == 1 && d.translate(-u, -u);
	}
	function Ft(e) {
		let t = !0;
		return y.forEach((n, i) => {
			if (!n.show) return;
			let a = b[n.scale];
			if (a.min == null) {
				n._show && (t = !1, n._show = !1, Rt(!1));
				return;
			}
			n._show || (t = !1, n._show = !0, Rt(!1));
			let o = n.side, s = o % 2, { min: c, max: l } = a, [u, d] = Nt(i, c, l, s == 0 ? z : B);
			if (d == 0) return;
			let f = a.distr == 2, p = n._splits = n.splits(r, i, c, l, u, d, f), m = a.distr == 2 ? p.map((e) => ot[e]) : p, h = a.distr == 2 ? ot[p[1]] - ot[p[0]] : u, g = n._values = n.values(r, n.filter(r, m, i, d, h), i, d, h);
			n._rotate = o == 2 ? n.rotate(r, g, i, d) : 0;
			let _ = n._size;
			n._size = ci(n.size(r, g, i, e)), _ != null && n._size != _ && (t = !1);
		}), t;
	}
	function It(e) {
		let t = !0;
		return tt.forEach((n, i) => {
			let a = n(r, i, Qe, e);
			a != nt[i] && (t = !1), nt[i] = a;
		}), t;
	}
	function Lt() {
		for (let e = 0; e < y.length; e++) {
			let t = y[e];
			if (!t.show || !t._show) continue;
			let n = t.side, i = n % 2, a, o, c = t.stroke(r, e), l = n == 0 || n == 3 ? -1 : 1, [u, f] = t._found;
			if (t.label != null) {
				let s = t.labelGap * l, p = si((t._lpos + s) * J);
				xt(t.labelFont[0], c, "center", n == 2 ? nr : rr), d.save(), i == 1 ? (a = o = 0, d.translate(p, si(Oe + Ae / 2)), d.rotate((n == 3 ? -ii : ii) / 2)) : (a = si(De + ke / 2), o = p);
				let m = bi(t.label) ? t.label(r, e, u, f) : t.label;
				d.fillText(m, a, o), d.restore();
			}
			if (f == 0) continue;
			let p = b[t.scale], m = i == 0 ? ke : Ae, h = i == 0 ? De : Oe, _ = t._splits, v = p.distr == 2 ? _.map((e) => ot[e]) : _, x = p.distr == 2 ? ot[_[1]] - ot[_[0]] : u, S = t.ticks, C = t.border, w = S.show ? S.size : 0, T = si(w * J), E = si((t.alignTo == 2 ? t._size - w - t.gap : t.gap) * J), D = t._rotate * -ii / 180, O = g(t._pos * J), k = O + (T + E) * l;
			o = i == 0 ? k : 0, a = i == 1 ? k : 0;
			let A = t.font[0];
			xt(A, c, t.align == 1 ? ir : t.align == 2 ? ar : D > 0 ? ir : D < 0 ? ar : i == 0 ? "center" : n == 3 ? ar : ir, D || i == 1 ? "middle" : n == 2 ? nr : rr);
			let j = t.font[1] * t.lineGap, ee = _.map((e) => g(s(e, p, m, h))), te = t._values;
			for (let e = 0; e < te.length; e++) {
				let t = te[e];
				if (t != null) {
					i == 0 ? a = ee[e] : o = ee[e], t = "" + t;
					let n = t.indexOf("\n") == -1 ? [t] : t.split(/\n/gm);
					for (let e = 0; e < n.length; e++) {
						let t = n[e];
						D ? (d.save(), d.translate(a, o + e * j), d.rotate(D), d.fillText(t, 0, 0), d.restore()) : d.fillText(t, a, o + e * j);
					}
				}
			}
			S.show && Pt(ee, S.filter(r, v, e, f, x), i, n, O, T, Q(S.width * J, 3), S.stroke(r, e), S.dash, S.cap);
			let ne = t.grid;
			ne.show && Pt(ee, ne.filter(r, v, e, f, x), i, i == 0 ? 2 : 1, i == 0 ? Oe : De, i == 0 ? Ae : ke, Q(ne.width * J, 3), ne.stroke(r, e), ne.dash, ne.cap), C.show && Pt([O], [1], +(i == 0), i == 0 ? 1 : 2, i == 1 ? Oe : De, i == 1 ? Ae : ke, Q(C.width * J, 3), C.stroke(r, e), C.dash, C.cap);
		}
		Hr("drawAxes");
	}
	function Rt(e) {
		v.forEach((t, n) => {
			n > 0 && (t._paths = null, e && (i == 1 ? (t.min = null, t.max = null) : t.facets.forEach((e) => {
				e.min = null, e.max = null;
			})));
		});
	}
	let zt = !1, Bt = !1, Vt = [];
	function Ht() {
		Bt = !1;
		for (let e = 0; e < Vt.length; e++) Hr(...Vt[e]);
		Vt.length = 0;
	}
	function Ut() {
		zt ||= ($i(Gt), !0);
	}
	function Wt(e, t = !1) {
		zt = !0, Bt = t, e(r), Gt(), t && Vt.length > 0 && queueMicrotask(Ht);
	}
	r.batch = Wt;
	function Gt() {
		if (je &&= (wt(), !1), Ne &&= (Re(), !1), Me) {
			if (Y(p, ir, xe), Y(p, nr, Se), Y(p, er, z), Y(p, tr, B), Y(m, ir, xe), Y(m, nr, Se), Y(m, er, z), Y(m, tr, B), Y(f, er, ye), Y(f, tr, be), u.width = si(ye * J), u.height = si(be * J), y.forEach(({ _el: e, _show: t, _size: n, _pos: r, side: i }) => {
				if (e != null) {
					if (t) {
						let t = i === 3 || i === 0 ? n : 0, a = i % 2 == 1;
						Y(e, a ? "left" : "top", r - t), Y(e, a ? "width" : "height", n), Y(e, a ? "top" : "left", a ? Se : xe), Y(e, a ? "height" : "width", a ? B : z), Er(e, Hn);
					} else Tr(e, Hn);
				}
			}), ut = dt = ft = mt = ht = gt = _t = vt = pt = null, yt = 1, Nn(!0), xe != Ce || Se != we || z != Te || B != Ee) {
				Rt(!1);
				let e = z / Te, t = B / Ee;
				if (oe && !Pe && N.left >= 0) {
					N.left *= e, N.top *= t, Yt && Ar(Yt, si(N.left), 0, z, B), Xt && Ar(Xt, 0, si(N.top), z, B);
					for (let n = 0; n < H.length; n++) {
						let r = H[n];
						r != null && (U[n] *= e, qe[n] *= t, Ar(r, ci(U[n]), ci(qe[n]), z, B));
					}
				}
				if (q.show && !Fe && q.left >= 0 && q.width > 0) {
					q.left *= e, q.width *= e, q.top *= t, q.height *= t;
					for (let e in hr) Y(cn, e, q[e]);
				}
				Ce = xe, we = Se, Te = z, Ee = B;
			}
			Hr("setSize"), Me = !1;
		}
		ye > 0 && be > 0 && (d.clearRect(0, 0, u.width, u.height), Hr("drawClear"), w.forEach((e) => e()), Hr("draw")), q.show && Fe && (ln(q), Fe = !1), oe && Pe && (jn(null, !0, !1), Pe = !1), M.show && M.live && Ie && (kn(), Ie = !1), c || (c = !0, r.status = 1, Hr("ready")), st = !1, zt = !1;
	}
	r.redraw = (e, t) => {
		Ne = t || !1, e === !1 ? Ut() : dn(S, D.min, D.max);
	};
	function Kt(e, n) {
		let i = b[e];
		if (i.from == null) {
			if (rt == 0) {
				let t = i.range(r, n.min, n.max, e);
				n.min = t[0], n.max = t[1];
			}
			if (n.min > n.max) {
				let e = n.min;
				n.min = n.max, n.max = e;
			}
			if (rt > 1 && n.min != null && n.max != null && n.max - n.min < 1e-16) return;
			e == S && i.distr == 2 && rt > 0 && (n.min = zr(n.min, t[0]), n.max = zr(n.max, t[0]), n.min == n.max && n.max++), j[e] = n, je = !0, Ut();
		}
	}
	r.setScale = Kt;
	let qt, Jt, Yt, Xt, Zt, Qt, $t, en, tn, nn, G, K, rn = !1, an = N.drag, on = an.x, sn = an.y;
	oe && (N.x && (qt = Or(Wn, m)), N.y && (Jt = Or(Gn, m)), D.ori == 0 ? (Yt = qt, Xt = Jt) : (Yt = Jt, Xt = qt), G = N.left, K = N.top);
	let q = r.select = qi({
		show: !0,
		over: !0,
		left: 0,
		width: 0,
		top: 0,
		height: 0
	}, e.select), cn = q.show ? Or(Un, q.over ? m : p) : null;
	function ln(e, t) {
		if (q.show) {
			for (let t in e) q[t] = e[t], t in hr && Y(cn, t, e[t]);
			t !== !1 && Hr("setSelect");
		}
	}
	r.setSelect = ln;
	function un(e) {
		if (v[e].show) P && Er(ce[e], Hn);
		else if (P && Tr(ce[e], Hn), oe) {
			let t = Ke ? H[0] : H[e];
			t != null && Ar(t, -10, -10, z, B);
		}
	}
	function dn(e, t, n) {
		Kt(e, {
			min: t,
			max: n
		});
	}
	function fn(e, t, n, a) {
		t.focus != null && xn(e), t.show != null && v.forEach((n, r) => {
			r > 0 && (e == r || e == null) && (n.show = t.show, un(r), i == 2 ? (dn(n.facets[0].scale, null, null), dn(n.facets[1].scale, null, null)) : dn(n.scale, null, null), Ut());
		}), n !== !1 && Hr("setSeries", e, t), a && ei("setSeries", r, e, t);
	}
	r.setSeries = fn;
	function pn(e, t) {
		qi(x[e], t);
	}
	function mn(e, t) {
		e.fill = Z(e.fill || null), e.dir = X(e.dir, -1), t ??= x.length, x.splice(t, 0, e);
	}
	function hn(e) {
		e == null ? x.length = 0 : x.splice(e, 1);
	}
	r.addBand = mn, r.setBand = pn, r.delBand = hn;
	function gn(e, t) {
		v[e].alpha = t, oe && H[e] != null && (H[e].style.opacity = t), P && ce[e] && (ce[e].style.opacity = t);
	}
	let _n, vn, yn, bn = { focus: !0 };
	function xn(e) {
		if (e != yn) {
			let t = e == null, n = We.alpha != 1;
			v.forEach((r, a) => {
				if (i == 1 || a > 0) {
					let i = t || a == 0 || a == e;
					r._focus = t ? null : i, n && gn(a, i ? 1 : We.alpha);
				}
			}), yn = e, n && Ut();
		}
	}
	P && Ge && _e(fr, I, (e) => {
		N._lock || (He(e), yn != null && fn(null, bn, !0, Wr.setSeries));
	});
	function Sn(e, t, n) {
		let r = b[t];
		n && (e = e / J - (r.ori == 1 ? Se : xe));
		let i = z;
		r.ori == 1 && (i = B, e = i - e), r.dir == -1 && (e = i - e);
		let a = r._min, o = r._max, s = e / i, c = a + (o - a) * s, l = r.distr;
		return l == 3 ? di(10, c) : l == 4 ? hi(c, r.asinh) : l == 100 ? r.bwd(c) : c;
	}
	function Cn(e, n) {
		return zr(Sn(e, S, n), t[0], W, it);
	}
	r.valToIdx = (e) => zr(e, t[0]), r.posToIdx = Cn, r.posToVal = Sn, r.valToPos = (e, t, n) => b[t].ori == 0 ? a(e, b[t], n ? ke : z, n ? De : 0) : o(e, b[t], n ? Ae : B, n ? Oe : 0), r.setCursor = (e, t, n) => {
		G = e.left, K = e.top, jn(null, t, n);
	};
	function wn(e, t) {
		Y(cn, ir, q.left = e), Y(cn, er, q.width = t);
	}
	function Tn(e, t) {
		Y(cn, nr, q.top = e), Y(cn, tr, q.height = t);
	}
	let En = D.ori == 0 ? wn : Tn, Dn = D.ori == 1 ? wn : Tn;
	function On() {
		if (P && M.live) for (let e = +(i == 2); e < v.length; e++) {
			if (e == 0 && de) continue;
			let t = M.values[e], n = 0;
			for (let r in t) le[e][n++].firstChild.nodeValue = t[r];
		}
	}
	function kn(e, t) {
		if (e != null && (e.idxs ? e.idxs.forEach((e, t) => {
			ae[t] = e;
		}) : Bi(e.idx) || ae.fill(e.idx), M.idx = ae[0]), P && M.live) {
			for (let e = 0; e < v.length; e++) (e > 0 || i == 1 && !de) && An(e, ae[e]);
			On();
		}
		Ie = !1, t !== !1 && Hr("setLegend");
	}
	r.setLegend = kn;
	function An(e, n) {
		let i = v[e], a = e == 0 && O == 2 ? ot : t[e], o;
		de ? o = i.values(r, e, n) ?? fe : (o = i.value(r, n == null ? null : a[n], e, n), o = o == null ? fe : { _: o }), M.values[e] = o;
	}
	function jn(e, n, a) {
		tn = G, nn = K, [G, K] = N.move(r, G, K), N.left = G, N.top = K, oe && (Yt && Ar(Yt, si(G), 0, z, B), Xt && Ar(Xt, 0, si(K), z, B));
		let o, s = W > it;
		_n = _i, vn = null;
		let c = D.ori == 0 ? z : B, l = D.ori == 1 ? z : B;
		if (G < 0 || rt == 0 || s) {
			o = N.idx = null;
			for (let e = 0; e < v.length; e++) {
				let t = H[e];
				t != null && Ar(t, -10, -10, z, B);
			}
			Ge && fn(null, bn, !0, e == null && Wr.setSeries), M.live && (ae.fill(o), Ie = !0);
		} else {
			let e, n, a;
			i == 1 && (e = D.ori == 0 ? G : K, n = Sn(e, S), o = N.idx = zr(n, t[0], W, it), a = k(t[0][o], D, c, 0));
			let s = -10, u = -10, d = 0, f = 0, p = !0, m = "", h = "";
			for (let e = +(i == 2); e < v.length; e++) {
				let g = v[e], _ = ae[e], y = _ == null ? null : i == 1 ? t[e][_] : t[e][1][_], x = N.dataIdx(r, e, o, n), S = x == null ? null : i == 1 ? t[e][x] : t[e][1][x];
				if (Ie = Ie || S != y || x != _, ae[e] = x, e > 0 && g.show) {
					let n = x == null ? -10 : x == o ? a : k(i == 1 ? t[0][x] : t[e][0][x], D, c, 0), _ = S == null ? -10 : A(S, i == 1 ? b[g.scale] : b[g.facets[1].scale], l, 0);
					if (Ge && S != null) {
						let t = D.ori == 1 ? G : K, n = ai(We.dist(r, e, x, _, t));
						if (n < _n) {
							let r = We.bias;
							if (r != 0) {
								let i = Sn(t, g.scale), a = S >= 0 ? 1 : -1, o = i >= 0 ? 1 : -1;
								o == a && (o == 1 ? r == 1 ? S >= i : S <= i : r == 1 ? S <= i : S >= i) && (_n = n, vn = e);
							} else _n = n, vn = e;
						}
					}
					if (Ie || Ke) {
						let t, i;
						D.ori == 0 ? (t = n, i = _) : (t = _, i = n);
						let a, o, c, l, g, v, y = !0, b = Ue.bbox;
						if (b != null) {
							y = !1;
							let t = b(r, e);
							c = t.left, l = t.top, a = t.width, o = t.height;
						} else c = t, l = i, a = o = Ue.size(r, e);
						if (v = Ue.fill(r, e), g = Ue.stroke(r, e), Ke) e == vn && _n <= We.prox && (s = c, u = l, d = a, f = o, p = y, m = v, h = g);
						else {
							let t = H[e];
							t != null && (U[e] = c, qe[e] = l, Pr(t, a, o, y), Mr(t, v, g), Ar(t, ci(c), ci(l), z, B));
						}
					}
				}
			}
			if (Ke) {
				let e = We.prox;
				if (Ie || (yn == null ? _n <= e : _n > e || vn != yn)) {
					let e = H[0];
					e != null && (U[0] = s, qe[0] = u, Pr(e, d, f, p), Mr(e, m, h), Ar(e, ci(s), ci(u), z, B));
				}
			}
		}
		if (q.show && rn) {
			if (e != null) {
				let [t, n] = Wr.scales, [r, i] = Wr.match, [a, o] = e.cursor.sync.scales, s = e.cursor.drag;
				if (on = s._x, sn = s._y, on || sn) {
					let { left: s, top: u, width: d, height: f } = e.select, p = e.scales[a].ori, m = e.posToVal, h, g, _, v, y, x = t != null && r(t, a), S = n != null && i(n, o);
					x && on ? (p == 0 ? (h = s, g = d) : (h = u, g = f), _ = b[t], v = k(m(h, a), _, c, 0), y = k(m(h + g, a), _, c, 0), En(li(v, y), ai(y - v))) : En(0, c), S && sn ? (p == 1 ? (h = s, g = d) : (h = u, g = f), _ = b[n], v = A(m(h, o), _, l, 0), y = A(m(h + g, o), _, l, 0), Dn(li(v, y), ai(y - v))) : Dn(0, l);
				} else gr();
			} else {
				let e = ai(tn - Zt), t = ai(nn - Qt);
				if (D.ori == 1) {
					let n = e;
					e = t, t = n;
				}
				on = an.x && e >= an.dist, sn = an.y && t >= an.dist;
				let n = an.uni;
				n == null ? an.x && an.y && (on || sn) && (on = sn = !0) : on && sn && (on = e >= n, sn = t >= n, !on && !sn && (t > e ? sn = !0 : on = !0));
				let r, i;
				on && (D.ori == 0 ? (r = $t, i = G) : (r = en, i = K), En(li(r, i), ai(i - r)), sn || Dn(0, l)), sn && (D.ori == 1 ? (r = $t, i = G) : (r = en, i = K), Dn(li(r, i), ai(i - r)), on || En(0, c)), !on && !sn && (En(0, 0), Dn(0, 0));
			}
		}
		if (an._x = on, an._y = sn, e == null) {
			if (a) {
				if (Xr != null) {
					let [e, t] = Wr.scales;
					Wr.values[0] = e == null ? null : Sn(D.ori == 0 ? G : K, e), Wr.values[1] = t == null ? null : Sn(D.ori == 1 ? G : K, t);
				}
				ei(cr, r, G, K, z, B, o);
			}
			if (Ge) {
				let e = a && Wr.setSeries, t = We.prox;
				yn == null ? _n <= t && fn(vn, bn, !0, e) : _n > t ? fn(null, bn, !0, e) : vn != yn && fn(vn, bn, !0, e);
			}
		}
		Ie && (M.idx = o, kn()), n !== !1 && Hr("setCursor");
	}
	let Mn = null;
	Object.defineProperty(r, "rect", { get() {
		return Mn ?? Nn(!1), Mn;
	} });
	function Nn(e = !1) {
		e ? Mn = null : (Mn = m.getBoundingClientRect(), Hr("syncRect", Mn));
	}
	function or(e, t, n, r, i, a, o) {
		N._lock || rn && e != null && e.movementX == 0 && e.movementY == 0 || (mr(e, t, n, r, i, a, o, !1, e != null), e == null ? jn(t, !0, !1) : jn(null, !0, !0));
	}
	function mr(e, t, n, i, a, o, c, l, u) {
		if (Mn ?? Nn(!1), He(e), e != null) n = e.clientX - Mn.left, i = e.clientY - Mn.top;
		else {
			if (n < 0 || i < 0) {
				G = -10, K = -10;
				return;
			}
			let [e, r] = Wr.scales, c = t.cursor.sync, [l, u] = c.values, [d, f] = c.scales, [p, m] = Wr.match, h = t.axes[0].side % 2 == 1, g = D.ori == 0 ? z : B, _ = D.ori == 1 ? z : B, v = h ? o : a, y = h ? a : o, x = h ? i : n, S = h ? n : i;
			if (n = d == null ? x / v * g : p(e, d) ? s(l, b[e], g, 0) : -10, i = f == null ? S / y * _ : m(r, f) ? s(u, b[r], _, 0) : -10, D.ori == 1) {
				let e = n;
				n = i, i = e;
			}
		}
		u && (t == null || t.cursor.event.type == cr) && ((n <= 1 || n >= z - 1) && (n = ki(n, z)), (i <= 1 || i >= B - 1) && (i = ki(i, B))), l ? (Zt = n, Qt = i, [$t, en] = N.move(r, n, i)) : (G = n, K = i);
	}
	let hr = {
		width: 0,
		height: 0,
		left: 0,
		top: 0
	};
	function gr() {
		ln(hr, !1);
	}
	let yr, Sr, Cr, wr;
	function kr(e, t, n, i, a, o, s) {
		rn = !0, on = sn = an._x = an._y = !1, mr(e, t, n, i, a, o, s, !0, !1), e != null && (_e(ur, br, jr, !1), ei(lr, r, $t, en, z, B, null));
		let { left: c, top: l, width: u, height: d } = q;
		yr = c, Sr = l, Cr = u, wr = d;
	}
	function jr(e, t, n, i, a, o, s) {
		rn = an._x = an._y = !1, mr(e, t, n, i, a, o, s, !1, !0);
		let { left: c, top: l, width: u, height: d } = q, f = u > 0 || d > 0, p = yr != c || Sr != l || Cr != u || wr != d;
		if (f && p && ln(q), an.setScale && f && p) {
			let e = c, t = u, n = l, r = d;
			if (D.ori == 1 && (e = l, t = d, n = c, r = u), on && dn(S, Sn(e, S), Sn(e + t, S)), sn) for (let e in b) {
				let t = b[e];
				e != S && t.from == null && t.min != _i && dn(e, Sn(n + r, e), Sn(n, e));
			}
			gr();
		} else N.lock && (N._lock = !N._lock, jn(t, !0, e != null));
		e != null && (ve(ur, br), ei(ur, r, G, K, z, B, null));
	}
	function Nr(e, t, n, r, i, a, o) {
		if (N._lock) return;
		He(e);
		let s = rn;
		if (rn) {
			let e = !0, t = !0, n, r;
			D.ori == 0 ? (n = on, r = sn) : (n = sn, r = on), n && r && (e = G <= 10 || G >= z - 10, t = K <= 10 || K >= B - 10), n && e && (G = G < $t ? 0 : z), r && t && (K = K < en ? 0 : B), jn(null, !0, !0), rn = !1;
		}
		G = -10, K = -10, ae.fill(null), jn(null, !0, !0), s && (rn = s);
	}
	function Fr(e, t, n, i, a, o, s) {
		N._lock || (He(e), lt(), gr(), e != null && ei(pr, r, G, K, z, B, null));
	}
	function Ir() {
		y.forEach(Ms), Le(r.width, r.height, !0);
	}
	Lr(_r, xr, Ir);
	let Br = {};
	Br.mousedown = kr, Br.mousemove = or, Br.mouseup = jr, Br.dblclick = Fr, Br.setSeries = (e, t, n, i) => {
		let a = Wr.match[2];
		n = a(r, t, n), n != -1 && fn(n, i, !0, !1);
	}, oe && (_e(lr, m, kr), _e(cr, m, or), _e(dr, m, (e) => {
		He(e), Nn(!1);
	}), _e(fr, m, Nr), _e(pr, m, Fr), gs.add(r), r.syncRect = Nn);
	let Vr = r.hooks = e.hooks || {};
	function Hr(e, t, n) {
		Bt ? Vt.push([
			e,
			t,
			n
		]) : e in Vr && Vr[e].forEach((e) => {
			e.call(null, r, t, n);
		});
	}
	(e.plugins || []).forEach((e) => {
		for (let t in e.hooks) Vr[t] = (Vr[t] || []).concat(e.hooks[t]);
	});
	let Ur = (e, t, n) => n, Wr = qi({
		key: null,
		setSeries: !1,
		filters: {
			pub: Ti,
			sub: Ti
		},
		scales: [S, v[1] ? v[1].scale : null],
		match: [
			Ei,
			Ei,
			Ur
		],
		values: [null, null]
	}, N.sync);
	Wr.match.length == 2 && Wr.match.push(Ur), N.sync = Wr;
	let Xr = Wr.key, Zr = Lo(Xr);
	function ei(e, t, n, r, i, a, o) {
		Wr.filters.pub(e, t, n, r, i, a, o) && Zr.pub(e, t, n, r, i, a, o);
	}
	Zr.sub(r);
	function ti(e, t, n, r, i, a, o) {
		Wr.filters.sub(e, t, n, r, i, a, o) && Br[e](null, t, n, r, i, a, o);
	}
	r.pub = ti;
	function ni() {
		Zr.unsub(r), gs.delete(r), ge.clear(), Rr(_r, xr, Ir), l.remove(), I?.remove(), Hr("destroy");
	}
	r.destroy = ni;
	function ri() {
		Hr("init", e, t), ct(t || e.data, !1), j[S] ? Kt(S, j[S]) : lt(), Fe = q.show && (q.width > 0 || q.height > 0), Pe = Ie = !0, Le(e.width, e.height);
	}
	return v.forEach(Ye), y.forEach($e), n ? n instanceof HTMLElement ? (n.appendChild(l), ri()) : n(r, ri) : ri(), r;
}
Ns.assign = qi, Ns.fmtNum = ni, Ns.rangeNum = Qr, Ns.rangeLog = Kr, Ns.rangeAsinh = qr, Ns.orient = Bo, Ns.pxRatio = J, Ns.join = Qi, Ns.fmtDate = da, Ns.tzDate = pa, Ns.sync = Lo;
{
	Ns.addGap = Go, Ns.clipGaps = Wo;
	let e = Ns.paths = { points: as };
	e.linear = ls, e.stepped = us, e.bars = fs, e.spline = ms;
}
// src/state/theme.ts
var Ps = "warp.theme", Fs = (e) => globalThis.matchMedia?.(e) ?? null, Is = Fs("(prefers-color-scheme: dark)"), Ls = Fs("(prefers-reduced-motion: reduce)"), Rs = U(Is?.matches ?? !1), zs = U(Ls?.matches ?? !1);
Is?.addEventListener("change", (e) => Rs.value = e.matches), Ls?.addEventListener("change", (e) => zs.value = e.matches);
function Bs() {
	try {
		let e = globalThis.localStorage?.getItem(Ps);
		return e === "light" || e === "dark" ? e : "system";
	} catch {
		return "system";
	}
}
var Vs = U(Bs()), Hs = Ze(() => Vs.value === "system" ? Rs.value : Vs.value === "dark"), Us = Ze(() => !zs.value);
// src/curves/Plot.tsx
function Ws(e, t) {
	return getComputedStyle(e).getPropertyValue(t).trim();
}
function Gs(e) {
	for (let t = 0; t < 6; t += 1) if (Math.abs(e * 10 ** t - Math.round(e * 10 ** t)) < 1e-9 * 10 ** t) return t;
	return 6;
}
function Ks(e) {
	let t = Ce(null), n = Ce(null), r = Ce(e);
	r.current = e;
	let i = e.height ?? 260;
	return Se(() => {
		let a = t.current;
		if (a === null) return;
		let o = Ws(a, "--ink"), s = Ws(a, "--muted"), c = Ws(a, "--line"), l = `12px ${Ws(a, "--sans") || "system-ui, sans-serif"}`, u = (e, t, n, r, i) => {
			let a = Gs(i);
			return t.map((e) => e.toFixed(a));
		}, d = (e, t) => t.map((e) => e !== null && Number.isInteger(Math.log10(e)) ? wn(e) : ""), f = {
			stroke: s,
			font: l,
			grid: {
				stroke: c,
				width: 1
			},
			ticks: { show: !1 },
			labelFont: l,
			labelSize: 20,
			labelGap: 0,
			values: u
		}, p = new Ns({
			width: Math.max(200, a.clientWidth),
			height: i,
			padding: [
				12,
				18,
				0,
				0
			],
			legend: {
				show: !0,
				live: !0,
				markers: {
					width: 2,
					dash: (t, n) => ({
						0: "solid",
						2: (e.lines[n - 1]?.dash?.[0] ?? 0) < 4 ? "dotted" : "dashed"
					})[e.lines[n - 1]?.dash?.length ? 2 : 0] ?? "solid"
				}
			},
			cursor: {
				drag: {
					x: !1,
					y: !1
				},
				points: { size: 7 }
			},
			scales: {
				x: {
					time: !1,
					range: (e, t, n) => [Math.min(0, t ?? 0), Math.max(r.current.xEnd ?? 0, n ?? 1) || 1]
				},
				y: e.log === !0 ? {
					distr: 3,
					log: 10
				} : { range: (e, t, n) => [Math.min(r.current.least, t ?? r.current.least), Math.max(r.current.least + .1, (n ?? 1) * 1.04)] }
			},
			axes: [{
				...f,
				size: 34,
				label: e.xLabel,
				grid: { show: !1 }
			}, {
				...f,
				size: 48,
				label: e.yLabel,
				values: e.log === !0 ? d : u
			}],
			series: [{
				label: e.xLabel,
				value: (e, t) => t == null ? "–" : r.current.xValue(t)
			}, ...e.lines.map((t) => ({
				label: t.label,
				stroke: t.colour === "ink" ? o : t.colour === "muted" ? s : t.colour,
				width: t.width ?? 2,
				dash: t.dash ?? [],
				...t.fill === void 0 ? {} : { fill: t.fill },
				...e.bars === !0 ? { paths: Ns.paths.bars?.({ size: [.9] }) } : {},
				spanGaps: !0,
				points: { show: t.points ?? !1 },
				value: (e, t) => r.current.value(t ?? null)
			}))],
			hooks: { drawAxes: [(e) => {
				let { ctx: t } = e;
				for (let n of r.current.marks ?? []) {
					let r = Math.round(e.valToPos(n.x, "x", !0));
					Number.isFinite(r) && (t.save(), t.strokeStyle = s, t.fillStyle = s, t.lineWidth = devicePixelRatio, t.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]), t.beginPath(), t.moveTo(r, e.bbox.top), t.lineTo(r, e.bbox.top + e.bbox.height), t.stroke(), t.font = `${11 * devicePixelRatio}px system-ui, sans-serif`, t.textAlign = r > e.bbox.left + e.bbox.width * .7 ? "right" : "left", t.fillText(` ${n.label} `, r, e.bbox.top + 10 * devicePixelRatio), t.restore());
				}
			}] }
		}, r.current.data, a);
		n.current = p;
		let m = new ResizeObserver(() => {
			a.clientWidth > 0 && a.clientWidth !== p.width && p.setSize({
				width: a.clientWidth,
				height: i
			});
		});
		return m.observe(a), () => {
			m.disconnect(), p.destroy(), n.current = null;
		};
	}, [JSON.stringify([
		e.lines,
		Hs.value,
		e.xLabel,
		e.yLabel,
		e.bars,
		e.log
	]), i]), xe(() => {
		let t = n.current;
		if (t === null || (t.setData(e.data), (t.cursor.left ?? -1) >= 0 || (e.data[0]?.length ?? 0) === 0)) return;
		let r = e.data.map((e) => {
			let t = e.length - 1;
			for (; t > 0 && (e[t] === null || e[t] === void 0);) --t;
			return t;
		});
		t.setLegend({ idxs: r });
	}, [e.data, e.xEnd]), /* @__PURE__ */ q("div", {
		class: "plot",
		"data-y-label": e.yLabel,
		ref: t,
		role: "img",
		"aria-label": e.label,
		style: { minHeight: `${i + 30}px` }
	});
}
// src/curves/Curves.tsx
var qs = [
	{
		colour: "ink",
		dash: [],
		width: 2
	},
	{
		colour: "ink",
		dash: [7, 4],
		width: 2
	},
	{
		colour: "ink",
		dash: [2, 3],
		width: 2
	},
	{
		colour: "muted",
		dash: [],
		width: 2
	},
	{
		colour: "muted",
		dash: [7, 4],
		width: 2
	},
	{
		colour: "muted",
		dash: [2, 3],
		width: 2
	},
	{
		colour: "ink",
		dash: [
			10,
			3,
			2,
			3
		],
		width: 1
	},
	{
		colour: "muted",
		dash: [
			10,
			3,
			2,
			3
		],
		width: 1
	}
], Js = {
	"0.02": "the last 0.02 drive writes",
	"0.1": "the last 0.1 drive writes",
	1: "the last full drive write",
	all: "so far"
};
function Ys(e) {
	return e === "all" ? "WAF so far" : `WAF of ${Js[e] ?? e}`;
}
function Xs({ session: e }) {
	let t = ut("waf"), n = ut(0), r = ut("0.1");
	e.told.value;
	let i = e.lanes.value, a = i[Math.min(n.value, i.length - 1)];
	return a === void 0 ? null : /* @__PURE__ */ q("section", {
		class: "curves",
		"data-tour": "curves",
		"aria-label": "Curves",
		children: [
			/* @__PURE__ */ q("div", {
				class: "bar",
				children: [
					/* @__PURE__ */ q("h2", { children: "Curves" }),
					/* @__PURE__ */ q(un, {
						label: "curves",
						value: t.value,
						onChange: (e) => t.value = e,
						choices: [
							["waf", "WAF"],
							["handles", "by handle"],
							["time", "latency"],
							["wear", "wear"]
						]
					}),
					(t.value === "waf" || t.value === "handles") && /* @__PURE__ */ q("label", {
						class: "inline",
						children: ["over", /* @__PURE__ */ q("select", {
							value: r.value,
							onChange: (e) => r.value = e.currentTarget.value,
							children: Object.entries(Js).map(([e, t]) => /* @__PURE__ */ q("option", {
								value: e,
								children: e === "all" ? "the whole run" : t
							}, e))
						})]
					}),
					t.value !== "waf" && /* @__PURE__ */ q(dn, {
						lanes: i,
						value: n
					})
				]
			}),
			t.value === "waf" && /* @__PURE__ */ q($s, {
				session: e,
				window: r.value
			}),
			t.value === "handles" && /* @__PURE__ */ q(ec, {
				session: e,
				state: a,
				window: r.value
			}),
			t.value === "time" && /* @__PURE__ */ q(tc, {
				state: a,
				isDrive: e.isDrive
			}),
			t.value === "wear" && /* @__PURE__ */ q(ic, {
				session: e,
				state: a
			})
		]
	});
}
function Zs(e, t, n) {
	let r = t.lane.capacity_bytes;
	return n === "all" ? Tn(e, r) : Dn(e, r, Number(n) * r, t.gaps);
}
function Qs(e) {
	return e.isDrive ? "No host has written data yet." : "The run has written no data yet. Press play, or step by a few requests.";
}
function $s({ session: e, window: t, height: n }) {
	e.told.value;
	let r = e.lanes.value, { x: i, ys: a } = jn(r.map((e) => Zs(On(e), e, t))), o = r.map((e, t) => ({
		label: `${r.length > 1 ? `${cn(t)} ` : ""}${e.lane.name || e.lane.device}`,
		...qs[t % qs.length]
	})), s = r[0];
	if (s === void 0) return null;
	let c = e.order.value?.forks ?? [], l = s.lane.unwatched ?? [], u = l.at(-1);
	return /* @__PURE__ */ q("figure", { children: [
		/* @__PURE__ */ q(Ks, {
			lines: o,
			data: [i, ...a],
			xLabel: "drive writes",
			yLabel: Ys(t),
			least: 1,
			value: _n,
			xValue: xn,
			xEnd: e.endBytes / s.lane.capacity_bytes,
			marks: [...c.map((e) => ({
				x: e.at_host_bytes / s.lane.capacity_bytes,
				label: e.name
			})), ...l.map((e) => ({
				x: e.to_host_bytes / s.lane.capacity_bytes,
				label: `from ${Cn(e.until_unix_ms, Date.now())}`
			}))],
			label: `Write amplification over drive writes, so far ${r.map((e) => `${e.lane.name} ${_n(e.waf)}`).join(", ")}`,
			...n === void 0 ? {} : { height: n }
		}),
		i.length === 0 && /* @__PURE__ */ q("figcaption", {
			class: "empty",
			children: Qs(e)
		}),
		u !== void 0 && /* @__PURE__ */ q("figcaption", { children: Mn(u, s.lane.capacity_bytes, Date.now()) })
	] });
}
function ec({ session: e, state: t, window: n }) {
	e.told.value;
	let r = Dt(t.lane.owners, an(t)), i = t.lane.owners.map((e, t) => ({
		owner: e,
		index: t
	})).filter(({ index: e, owner: n }) => n.isolation !== null && (t.owners[e]?.hostBytes ?? 0) > 0), { x: a, ys: o } = jn(i.map(({ index: e }) => Zs(kn(t, e), t, n)));
	return /* @__PURE__ */ q("figure", { children: [/* @__PURE__ */ q(Ks, {
		lines: i.map(({ owner: e, index: t }) => ({
			label: e.name,
			colour: r[t] ?? "ink"
		})),
		data: [a, ...o],
		xLabel: "drive writes",
		yLabel: `own ${Ys(n)}`,
		least: 1,
		value: _n,
		xValue: xn,
		label: "Write amplification of each handle"
	}), /* @__PURE__ */ q("figcaption", {
		class: i.length === 0 ? "empty" : "",
		children: i.length === 0 ? Qs(e) : "The own WAF of a handle is (host writes + copies out of its units) / host writes. Copies out of the shared pool belong to no handle."
	})] });
}
function tc({ state: e, isDrive: t }) {
	let n = e.latency;
	if (t) return /* @__PURE__ */ q("p", {
		class: "empty",
		children: "For a served drive, the table above shows the latencies of each host in the last second."
	});
	if (!e.lane.timed) return /* @__PURE__ */ q("p", {
		class: "empty",
		children: [
			"This lane runs without a clock, so it has no latency. On the start page, choose a device with timing (",
			"ssd_a",
			", ",
			"ssd_b",
			", ",
			"pm9d3a",
			") and the clock “virtual time”."
		]
	});
	if (n === null) return /* @__PURE__ */ q("p", {
		class: "empty",
		children: "The latencies appear when the lane ends."
	});
	let { series: r } = n;
	return /* @__PURE__ */ q(x, { children: [
		/* @__PURE__ */ q(rc, { latencies: n.latencies ?? null }),
		r !== void 0 && r.seconds.length > 1 && /* @__PURE__ */ q(Ks, {
			lines: [{
				label: "hosts",
				colour: "ink"
			}, ...r.collection_bytes_per_second === void 0 ? [] : [{
				label: "garbage collection",
				colour: "#D55E00",
				dash: [5, 3]
			}]],
			data: [
				r.seconds,
				r.host_bytes_per_second.map((e) => e / 1e6),
				...r.collection_bytes_per_second === void 0 ? [] : [r.collection_bytes_per_second.map((e) => e / 1e6)]
			],
			xLabel: "seconds of virtual time",
			yLabel: "MB/s",
			least: 0,
			height: 200,
			value: (e) => e === null ? "–" : gn(e * 1e6),
			xValue: (e) => `${e.toFixed(2)} s`,
			label: "Bandwidth over virtual time"
		}),
		r?.waited_share?.some((e) => e > 0) === !0 && /* @__PURE__ */ q(Ks, {
			lines: [{
				label: "waited for garbage collection",
				colour: "#D55E00"
			}],
			data: [r.seconds, r.waited_share.map((e) => e * 100)],
			xLabel: "seconds of virtual time",
			yLabel: "% of requests",
			least: 0,
			height: 140,
			value: (e) => e === null ? "–" : vn(e / 100),
			xValue: (e) => `${e.toFixed(2)} s`,
			label: "Share of requests that waited for garbage collection over virtual time"
		}),
		/* @__PURE__ */ q("div", {
			class: "scroll",
			children: /* @__PURE__ */ q("table", {
				class: "numbers",
				children: [/* @__PURE__ */ q("thead", { children: /* @__PURE__ */ q("tr", { children: [
					/* @__PURE__ */ q("th", {
						scope: "col",
						children: "job"
					}),
					/* @__PURE__ */ q("th", {
						scope: "col",
						children: "IOPS"
					}),
					/* @__PURE__ */ q("th", {
						scope: "col",
						children: "bandwidth"
					}),
					/* @__PURE__ */ q("th", {
						scope: "col",
						children: "mean"
					}),
					/* @__PURE__ */ q("th", {
						scope: "col",
						children: "p50"
					}),
					/* @__PURE__ */ q("th", {
						scope: "col",
						children: "p99"
					}),
					/* @__PURE__ */ q("th", {
						scope: "col",
						children: "p99.9"
					}),
					/* @__PURE__ */ q("th", {
						scope: "col",
						children: "p99.99"
					}),
					/* @__PURE__ */ q("th", {
						scope: "col",
						children: "waited for GC"
					})
				] }) }), /* @__PURE__ */ q("tbody", { children: n.jobs.map((e) => /* @__PURE__ */ q("tr", { children: [
					/* @__PURE__ */ q("th", {
						scope: "row",
						children: [
							e.name,
							", ",
							e.direction
						]
					}),
					/* @__PURE__ */ q("td", { children: wn(e.iops) }),
					/* @__PURE__ */ q("td", { children: gn(e.bytes_per_second) }),
					/* @__PURE__ */ q("td", { children: Sn(e.mean_ns) }),
					/* @__PURE__ */ q("td", { children: Sn(e.p50_ns) }),
					/* @__PURE__ */ q("td", { children: Sn(e.p99_ns) }),
					/* @__PURE__ */ q("td", { children: Sn(e.p999_ns) }),
					/* @__PURE__ */ q("td", { children: Sn(e.p9999_ns) }),
					/* @__PURE__ */ q("td", { children: vn(e.waited_share) })
				] }, `${e.name} ${e.direction}`)) })]
			})
		})
	] });
}
var nc = [
	[
		"p50",
		"p50_ns",
		[]
	],
	[
		"p99",
		"p99_ns",
		[7, 4]
	],
	[
		"p99.9",
		"p999_ns",
		[2, 3]
	]
];
function rc({ latencies: e }) {
	if (e === null || e.seconds.length < 2) return null;
	let t = e.directions.flatMap((e) => nc.map(([t, n, r]) => ({
		line: {
			label: `${e.direction} ${t}`,
			colour: e.direction === "read" ? "muted" : "ink",
			dash: [...r],
			width: 2
		},
		values: e[n].map((e) => e === null ? null : Math.max(e, 1) / 1e3)
	})));
	return /* @__PURE__ */ q(Ks, {
		log: !0,
		lines: t.map(({ line: e }) => e),
		data: [e.seconds, ...t.map(({ values: e }) => e)],
		xLabel: "seconds of virtual time",
		yLabel: "latency, µs",
		least: 1,
		value: (e) => e === null ? "–" : Sn(e * 1e3),
		xValue: (e) => `${e.toFixed(2)} s`,
		label: "Percentiles of latency over virtual time"
	});
}
function ic({ session: e, state: t }) {
	let n = e.hosts.value, r = t.wear ?? n?.wear ?? null, i = t.result?.block_erases ?? r, a = t.owners.reduce((e, t) => e + t.reclaimed, 0);
	return /* @__PURE__ */ q(x, { children: [r !== null && r.max > r.min && /* @__PURE__ */ q(Ks, {
		lines: [{
			label: "blocks",
			colour: "ink",
			fill: "#8886"
		}],
		bars: !0,
		data: [r.blocks.map((e, t) => r.min + t * r.step), r.blocks],
		xLabel: "erases of a block",
		yLabel: "blocks",
		least: 0,
		height: 200,
		value: (e) => e === null ? "–" : wn(e),
		xValue: (e) => r.step === 1 ? String(e) : `${e} to ${e + r.step - 1}`,
		label: `Blocks by number of erases, from ${r.min} to ${r.max}`
	}), /* @__PURE__ */ q("dl", {
		class: "facts",
		children: [
			/* @__PURE__ */ q("div", { children: [/* @__PURE__ */ q("dt", { children: "reclaim units erased" }), /* @__PURE__ */ q("dd", { children: wn(a) })] }),
			/* @__PURE__ */ q("div", { children: [/* @__PURE__ */ q("dt", { children: "average erases of a unit" }), /* @__PURE__ */ q("dd", { children: (a / Math.max(1, t.lane.superblocks)).toFixed(2) })] }),
			/* @__PURE__ */ q("div", { children: [/* @__PURE__ */ q("dt", { children: "flash written" }), /* @__PURE__ */ q("dd", { children: mn(t.mediaBytes) })] }),
			i !== null && /* @__PURE__ */ q("div", { children: [/* @__PURE__ */ q("dt", { children: "erases of a block (min, avg, max)" }), /* @__PURE__ */ q("dd", { children: [
				i.min,
				", ",
				i.avg.toFixed(1),
				", ",
				i.max
			] })] })
		]
	})] });
}
// src/state/knobs.ts
var ac = (...e) => e.map((e) => ({
	label: `${Math.round(e * 100)} %`,
	value: e
})), oc = (...e) => e.map((e) => ({
	label: e.replaceAll("_", " "),
	value: e
})), sc = [
	{
		path: "geometry.over_provisioning",
		label: "over-provisioning",
		values: ac(.07, .1, .15, .2, .28, .4),
		hint: "a share of the capacity, such as 0.28"
	},
	{
		path: "gc.victim_policy",
		label: "victim selection",
		values: [
			...oc("greedy", "cost_age", "benefit_cost", "benefit_cost_since_invalidation", "fifo", "random"),
			{
				label: "best of 8 (d-choices)",
				value: { d_choices: 8 }
			},
			{
				label: "best of 16 (d-choices)",
				value: { d_choices: 16 }
			},
			{
				label: "windowed greedy, 64",
				value: { windowed_greedy: 64 }
			}
		],
		hint: "greedy, fifo, ..."
	},
	{
		path: "handles.isolation",
		label: "isolation of handles",
		values: oc("initially_isolated", "persistently_isolated", "adaptive"),
		hint: "initially_isolated"
	},
	{
		path: "geometry.reclaim_unit_bytes",
		label: "reclaim unit size (full drive)",
		values: [
			"64MiB",
			"128MiB",
			"256MiB",
			"512MiB",
			"1GiB",
			"2GiB",
			"4GiB",
			"8GiB",
			"16GiB"
		].map((e) => ({
			label: e.replace(/(\d+)/, "$1 "),
			value: e
		})),
		hint: "a size of the full drive, such as 256MiB"
	},
	{
		path: "gc.source_policy",
		label: "source of collections",
		values: oc("global", "highest_pressure"),
		hint: "global"
	},
	{
		path: "gc.copies",
		label: "placement of copies",
		values: oc("apart", "with_host"),
		hint: "apart"
	},
	{
		path: "gc.lazy_valid_share",
		label: "lazy valid share",
		values: ac(0, .05, .1, .2),
		hint: "a share, such as 0.05"
	},
	{
		path: "handles.count",
		label: "number of handles",
		values: [
			1,
			2,
			4,
			8,
			16
		].map((e) => ({
			label: String(e),
			value: e
		})),
		hint: "1 to 128"
	},
	{
		path: "handles.hot_window_bytes",
		label: "hot data separation in the drive",
		values: [{
			label: "none",
			value: 0
		}, ...[
			"64MiB",
			"256MiB",
			"1GiB"
		].map((e) => ({
			label: e.replace(/(\d+)/, "$1 "),
			value: e
		}))],
		hint: "a size, such as 64MiB"
	},
	{
		path: "workload.global.dataplacement",
		label: "placement of a job file",
		values: [{
			label: "none (NoFDP)",
			value: "none"
		}, {
			label: "fdp",
			value: "fdp"
		}],
		hint: "none"
	}
], cc = "other";
function lc(e) {
	let t = e.trim();
	return t === "true" || t === "false" ? t === "true" : t !== "" && Number.isFinite(Number(t)) ? Number(t) : t;
}
function uc(e) {
	return typeof e == "object" ? Object.entries(e).map(([e, t]) => `${e} ${t}`).join(", ") : String(e);
}
function dc(e) {
	return Object.entries(e).map(([e, t]) => {
		let n = sc.find((t) => t.path === e), r = n?.values.find((e) => JSON.stringify(e.value) === JSON.stringify(t))?.label ?? uc(t);
		return e === "geometry.over_provisioning" ? `OP ${r}` : e === "handles.isolation" ? {
			initially_isolated: "II",
			persistently_isolated: "PI"
		}[String(t)] ?? r : e === "geometry.reclaim_unit_bytes" ? `units of ${r}` : n === void 0 ? `${e.split(".").at(-1)} ${r}` : r;
	}).join(", ");
}
function fc(e, t) {
	let n = e.settings[t];
	if (n === void 0) return "";
	let r = sc.find((e) => e.path === t), i = r?.values.find((e) => JSON.stringify(e.value) === JSON.stringify(n))?.label;
	return i === void 0 ? typeof n == "number" && t.endsWith("_bytes") && n > 0 ? mn(n) : typeof n == "number" && r?.values[0]?.label.endsWith("%") === !0 ? vn(n) : uc(n).replaceAll("_", " ") : i;
}
function pc(e, t) {
	for (let n = 2, r = e;; n += 1) {
		if (!t.includes(r)) return r;
		r = `${e} ${n}`;
	}
}
// src/parts/ForkDialog.tsx
function mc({ path: e, value: t, other: n }) {
	let r = sc.find((t) => t.path === e.value);
	return /* @__PURE__ */ q(x, { children: [/* @__PURE__ */ q("label", { children: ["setting", /* @__PURE__ */ q("select", {
		value: e.value,
		onChange: (n) => {
			e.value = n.currentTarget.value;
			let r = sc.find((t) => t.path === e.value);
			t.value = r?.values[0] === void 0 ? "" : JSON.stringify(r.values[0].value);
		},
		children: [sc.map((e) => /* @__PURE__ */ q("option", {
			value: e.path,
			children: e.label
		}, e.path)), /* @__PURE__ */ q("option", {
			value: cc,
			children: "another setting …"
		})]
	})] }), r === void 0 ? /* @__PURE__ */ q(x, { children: [/* @__PURE__ */ q("label", { children: ["name of the setting", /* @__PURE__ */ q("input", {
		type: "text",
		required: !0,
		placeholder: "gc.background_watermark, workload.SECTION.OPTION",
		value: n.value,
		onInput: (e) => n.value = e.currentTarget.value,
		spellcheck: !1
	})] }), /* @__PURE__ */ q("label", { children: ["value", /* @__PURE__ */ q("input", {
		type: "text",
		required: !0,
		value: t.value,
		onInput: (e) => t.value = e.currentTarget.value,
		spellcheck: !1
	})] })] }) : /* @__PURE__ */ q("label", { children: ["value", /* @__PURE__ */ q("select", {
		value: t.value,
		onChange: (e) => t.value = e.currentTarget.value,
		children: r.values.map((e) => /* @__PURE__ */ q("option", {
			value: JSON.stringify(e.value),
			children: e.label
		}, e.label))
	})] })] });
}
function hc(e, t, n) {
	return e === "other" ? n.trim() === "" ? {} : { [n.trim()]: lc(t) } : { [e]: JSON.parse(t) };
}
function gc({ session: e, open: t }) {
	let n = Ce(null), r = ut(0), i = ut("geometry.over_provisioning"), a = ut("0.28"), o = ut(""), s = ut("");
	xe(() => {
		t.value ? n.current?.showModal() : n.current?.close();
	}, [t.value]);
	let c = e.lanes.value, l = c[Math.min(r.value, c.length - 1)];
	if (l === void 0) return null;
	let u = hc(i.value, a.value, o.value), d = fc(l.lane, i.value === "other" ? o.value.trim() : i.value), f = pc(dc(u) || "fork", c.map((e) => e.lane.name));
	return /* @__PURE__ */ q("dialog", {
		ref: n,
		onClose: () => t.value = !1,
		"aria-labelledby": "fork-title",
		children: /* @__PURE__ */ q("form", {
			method: "dialog",
			onSubmit: () => {
				Object.keys(u).length > 0 && e.fork(r.value, s.value.trim() || f, u);
			},
			children: [
				/* @__PURE__ */ q("h2", {
					id: "fork-title",
					children: [
						"Fork at ",
						xn(l.capacities),
						" drive writes"
					]
				}),
				/* @__PURE__ */ q("p", {
					class: "note",
					children: "The fork is a new lane that runs in step. Victim selection, watermarks and the workload change from here. With any other setting, the fork starts from the beginning and catches up."
				}),
				c.length > 1 && /* @__PURE__ */ q("label", { children: ["lane", /* @__PURE__ */ q("select", {
					value: r.value,
					onChange: (e) => r.value = Number(e.currentTarget.value),
					children: c.map((e, t) => /* @__PURE__ */ q("option", {
						value: t,
						children: [
							cn(t),
							" ",
							e.lane.name
						]
					}, t))
				})] }),
				/* @__PURE__ */ q(mc, {
					path: i,
					value: a,
					other: o
				}),
				/* @__PURE__ */ q("p", {
					class: "note value-now",
					children: d === "" ? "" : `The current value is ${d}.`
				}),
				/* @__PURE__ */ q("label", { children: ["name of the fork", /* @__PURE__ */ q("input", {
					type: "text",
					value: s.value,
					placeholder: f,
					maxLength: 60,
					onInput: (e) => s.value = e.currentTarget.value
				})] }),
				/* @__PURE__ */ q("div", {
					class: "buttons",
					children: [/* @__PURE__ */ q("button", {
						type: "submit",
						class: "primary",
						children: "Fork"
					}), /* @__PURE__ */ q("button", {
						type: "button",
						formNoValidate: !0,
						onClick: () => t.value = !1,
						children: "Cancel"
					})]
				})
			]
		})
	});
}
// src/parts/Prose.tsx
function _c({ children: e }) {
	return /* @__PURE__ */ q(x, { children: e.split("`").map((e, t) => t % 2 == 1 ? /* @__PURE__ */ q("code", { children: e }, t) : e) });
}
function vc(e) {
	return typeof e == "string" ? /* @__PURE__ */ q(_c, { children: e }) : Array.isArray(e) ? e.map((e) => vc(e)) : e;
}
// src/parts/Notice.tsx
function yc({ kind: e, onClose: t, children: n }) {
	return /* @__PURE__ */ q("div", {
		class: `notice ${e}`,
		role: e === "error" ? "alert" : "status",
		children: [/* @__PURE__ */ q("p", { children: vc(n) }), t !== void 0 && /* @__PURE__ */ q("button", {
			type: "button",
			class: "quiet",
			onClick: t,
			"aria-label": "Close",
			children: "×"
		})]
	});
}
// src/state/headline.ts
var bc = 5e-4;
function xc(e) {
	let t = Math.abs(e) * 100;
	return t >= 10 ? t.toFixed(0) : t.toFixed(1);
}
function Sc(e, t, n, r, i) {
	let a = n / r - 1, o = `(WAF ${_n(n)} against ${_n(r)})`;
	if (Math.abs(a) < bc) return {
		figure: "±0\xA0%",
		sentence: `${e.lane.name} and ${t.lane.name} write the same to the flash${i} ${o}.`
	};
	let s = a < 0 ? "less" : "more";
	return {
		figure: `${a < 0 ? "−" : "+"}${xc(a)}\u00a0%`,
		sentence: `${e.lane.name} writes ${xc(a)}\u00a0% ${s} to the flash than ${t.lane.name}${i} ${o}.`
	};
}
function Cc(e, t, n = !1) {
	if (e[0] === void 0) return null;
	if (e.every((e) => e.phase === "filling" || e.phase === "waiting" && e.hostBytes === 0) && e.some((e) => e.phase === "filling")) return {
		figure: "–",
		sentence: "The drive is being filled before the measurement."
	};
	let r = e.at(-1);
	if (r !== void 0 && r.lane.of !== null) {
		let n = e[r.lane.of], i = t.at(-1)?.at_host_bytes ?? 0, a = An(r, i), o = n === void 0 ? null : An(n, i);
		return n !== void 0 && a !== null && o !== null ? Sc(r, n, a, o, i > 0 ? " since the fork" : "") : {
			figure: "–",
			sentence: `${r.lane.name} is forked from ${n?.lane.name ?? "the first lane"}. Press play to see the difference.`
		};
	}
	let i = e.filter((e) => e.waf !== null);
	if (i.length === 0) return {
		figure: "–",
		sentence: n ? "No host has written data yet." : "The run has written no data yet. Press play."
	};
	if (i.length === 1) {
		let e = i[0], t = e.waf;
		return e.collections === 0 ? {
			figure: _n(t),
			sentence: "No garbage was collected yet, so the flash stores exactly the writes of the host."
		} : {
			figure: _n(t),
			sentence: `The drive wrote ${_n(t)} bytes to flash for each byte of the host.`
		};
	}
	let a = [...i].sort((e, t) => e.waf - t.waf), o = a[0], s = a.at(-1);
	return Sc(o, s, o.waf, s.waf, " so far");
}
// src/map/UnitMap.tsx
var wc = 26;
function Tc({ session: e, state: t, grouping: n, mostHeight: r = 380, hasHint: i = !0 }) {
	let a = Ce(null), o = Ce(null), s = Ce(null), c = Ce(null), [l, u] = z(r), [d, f] = z([]), [p, m] = z(null), h = Ce(() => {}), g = n.value;
	Se(() => {
		let i = a.current;
		if (i === null || o.current === null || s.current === null) return;
		let l = new K(o.current, s.current, t, {
			grouping: n.peek(),
			ground: Hs.peek() ? kt : Ot,
			moves: Us.peek()
		});
		c.current = l;
		let d = 0, p = !1, m = () => Math.min(2, globalThis.devicePixelRatio || 1), g = () => {
			let e = i.clientWidth;
			e !== 0 && (u(l.arrange(e, r, m(), {
				grouping: n.peek(),
				ground: Hs.peek() ? kt : Ot,
				moves: Us.peek()
			})), f([...l.layout?.regions ?? []]), p = !0);
		}, _ = 0, v = (e) => {
			d = 0, _ = e, (!p || l.isOutdated) && g();
			let t = l.layout?.regions;
			l.picture(e) && b(), l.isOutdated && g(), l.layout?.regions !== t && f([...l.layout?.regions ?? []]);
		}, y, b = () => {
			if (d !== 0 || y !== void 0) return;
			let e = _ + wc - performance.now();
			e <= 0 ? d = requestAnimationFrame(v) : y = setTimeout(() => {
				y = void 0, d === 0 && (d = requestAnimationFrame(v));
			}, e);
		};
		h.current = b;
		let x = nt(() => {
			e.drawn.value, b();
		}), S = nt(() => {
			n.value, Hs.value, Us.value, p = !1, b();
		}), C = i.clientWidth, w = new ResizeObserver(() => {
			i.clientWidth !== C && (C = i.clientWidth, p = !1, b());
		});
		return w.observe(i), () => {
			w.disconnect(), x(), S(), cancelAnimationFrame(d), clearTimeout(y), l.end(), c.current = null;
		};
	}, [
		e,
		t,
		r
	]), xe(() => {
		c.current?.setFocus(p), h.current();
	}, [p]);
	let _ = (e) => {
		let t = s.current?.getBoundingClientRect(), n = c.current?.layout;
		if (t === void 0 || n == null || s.current === null) return;
		let r = s.current.width / t.width;
		m(n.unitAt((e.clientX - t.left) * r, (e.clientY - t.top) * r));
	};
	return /* @__PURE__ */ q("div", {
		class: "unit-map",
		"data-tour": "map",
		children: [/* @__PURE__ */ q("div", {
			class: "unit-map-scroll",
			children: /* @__PURE__ */ q("div", {
				class: "unit-map-frame",
				ref: a,
				style: { height: `${l}px` },
				role: "application",
				tabIndex: 0,
				"aria-roledescription": "map of reclaim units",
				"aria-label": `${yn(t.lane.units)} reclaim units of ${t.lane.name}. Use the arrow keys to move between units.`,
				onPointerMove: _,
				onPointerDown: _,
				onPointerLeave: (e) => e.pointerType === "mouse" && m(null),
				onKeyDown: (e) => {
					let t = c.current?.layout;
					if (t == null) return;
					let n = {
						ArrowLeft: [-1, 0],
						ArrowRight: [1, 0],
						ArrowUp: [0, -1],
						ArrowDown: [0, 1]
					}[e.key];
					n === void 0 ? e.key === "Escape" && m(null) : (e.preventDefault(), m(p === null ? t.first() : t.beside(p, ...n)));
				},
				children: [
					/* @__PURE__ */ q("canvas", {
						ref: o,
						class: "tiles",
						"aria-hidden": "true"
					}),
					/* @__PURE__ */ q("canvas", {
						ref: s,
						class: "above",
						"aria-hidden": "true"
					}),
					g !== "physical" && /* @__PURE__ */ q(Ec, {
						session: e,
						state: t,
						regions: d,
						grouping: g,
						scale: s.current?.width ? s.current.width / (a.current?.clientWidth || 1) : 1
					})
				]
			})
		}), /* @__PURE__ */ q(Ac, {
			session: e,
			state: t,
			unit: p,
			hasHint: i
		})]
	});
}
function Ec({ session: e, state: t, regions: n, grouping: r, scale: i }) {
	e.told.value;
	let a = Dt(t.lane.owners, an(t));
	return /* @__PURE__ */ q(x, { children: n.map((e) => {
		let n = { transform: `translateY(${e.top / i}px)` };
		if (r === "group") return /* @__PURE__ */ q("div", {
			class: "region",
			style: n,
			children: /* @__PURE__ */ q("b", { children: ["reclaim group ", e.key] })
		}, e.key);
		if (e.key === 255) return /* @__PURE__ */ q("div", {
			class: "region",
			style: n,
			children: [
				/* @__PURE__ */ q("i", { class: "swatch free" }),
				/* @__PURE__ */ q("b", { children: "free" }),
				/* @__PURE__ */ q("span", { children: bn(t.freeUnits, "unit") })
			]
		}, e.key);
		let o = t.lane.owners[e.key], s = t.owners[e.key], c = t.lane.placements.length === t.lane.owners.length ? t.lane.placements[e.key] : void 0;
		return /* @__PURE__ */ q("div", {
			class: "region",
			style: n,
			children: [
				/* @__PURE__ */ q("i", {
					class: "swatch",
					style: { background: a[e.key] }
				}),
				/* @__PURE__ */ q("b", { children: o?.name }),
				c !== void 0 && c !== "" && /* @__PURE__ */ q("em", { children: c }),
				/* @__PURE__ */ q("span", { children: [bn(s?.units ?? 0, "unit"), s !== void 0 && s.units > 0 && `, ${vn(s.validPages / (s.units * t.unitPages))} valid`] })
			]
		}, e.key);
	}) });
}
var Dc = {
	0: "free",
	1: "open for the host",
	2: "open for collection",
	3: "closed"
};
function Oc(e, t) {
	let n = e.unitOf(t), r = e.state[n] ?? 0, i = e.lane.groups > 1 ? `, reclaim group ${e.group[n]}` : "";
	if (r === 0) return `free${i}`;
	let a = e.pagesOf(n), o = e.lane.owners[e.owner[n] ?? 255], s = o?.isolation === null || o === void 0 ? "" : ` (${o.isolation})`, c = e.valid[n] ?? 0, l = e.written[n] ?? 0, u = l < a ? `, room for ${yn(a - l)}` : "";
	return `${o?.name ?? "no owner"}${s}, ${Dc[r] ?? "unknown"}${i}, ${vn(c / a)} valid (${yn(c)} of ${yn(a)} pages), ${yn(l)} written${u}`;
}
var kc = globalThis.matchMedia?.("(hover: none)").matches === !0 ? "Touch a unit to see its contents." : "Point at a unit to see its contents, or use the arrow keys.";
function Ac({ session: e, state: t, unit: n, hasHint: r }) {
	return e.told.value, /* @__PURE__ */ q("p", {
		class: "unit-line",
		"aria-live": "polite",
		children: n === null ? r && kc : /* @__PURE__ */ q(x, { children: [
			/* @__PURE__ */ q("b", { children: ["unit ", t.unitOf(n)] }),
			" ",
			Oc(t, n)
		] })
	});
}
function jc() {
	return /* @__PURE__ */ q("p", {
		class: "legend",
		children: [
			/* @__PURE__ */ q("span", { children: [/* @__PURE__ */ q("i", { class: "swatch key" }), " valid"] }),
			/* @__PURE__ */ q("span", { children: [/* @__PURE__ */ q("i", { class: "swatch key dead" }), " invalid"] }),
			/* @__PURE__ */ q("span", { children: [/* @__PURE__ */ q("i", { class: "swatch key open" }), " open for the host"] }),
			/* @__PURE__ */ q("span", { children: [/* @__PURE__ */ q("i", { class: "swatch key collecting" }), " open for collection"] })
		]
	});
}
// src/parts/LanePanel.tsx
var Mc = {
	waiting: "waiting",
	filling: "filling before the run",
	running: "running",
	paused: "paused",
	ended: "ended",
	failed: "failed"
};
function Nc({ session: e, state: t, index: n, grouping: r, mostHeight: i }) {
	e.told.value;
	let { lane: a } = t, o = e.lanes.value, s = o.length === 1, c = a.of === null ? void 0 : e.order.value?.forks[o.slice(0, n).filter((e) => e.lane.of !== null).length];
	return /* @__PURE__ */ q("article", {
		class: "lane",
		"aria-label": `Lane ${a.name}`,
		children: [
			/* @__PURE__ */ q("header", {
				class: "lane-head",
				children: [
					/* @__PURE__ */ q("div", {
						class: "lane-name",
						children: [
							!s && /* @__PURE__ */ q(ln, { index: n }),
							/* @__PURE__ */ q("h2", {
								title: a.name,
								children: a.name || a.device
							}),
							a.of !== null && /* @__PURE__ */ q("button", {
								type: "button",
								class: "quiet",
								onClick: () => e.drop(n),
								"aria-label": `Drop lane ${a.name}`,
								children: "drop"
							})
						]
					}),
					/* @__PURE__ */ q("p", {
						class: "lane-waf",
						"aria-label": `write amplification so far ${_n(t.waf)}`,
						children: [
							/* @__PURE__ */ q("span", { children: "WAF so far" }),
							" ",
							/* @__PURE__ */ q("b", { children: _n(t.waf) })
						]
					}),
					/* @__PURE__ */ q("p", {
						class: "lane-sub",
						children: [
							a.device,
							a.scale !== "" && a.scale !== "1/1" && ` at ${a.scale}`,
							", ",
							mn(a.capacity_bytes),
							a.workload !== "" && /* @__PURE__ */ q(x, { children: [", ", a.workload] }),
							c !== void 0 && `, forked at ${xn(c.at_host_bytes / a.capacity_bytes)}`,
							a.forked === "start" && ", run from the start"
						]
					}),
					/* @__PURE__ */ q("p", {
						class: "lane-phase",
						"data-phase": t.phase,
						children: Mc[t.phase]
					})
				]
			}),
			typeof a.error == "string" && /* @__PURE__ */ q(yc, {
				kind: "error",
				children: a.error
			}),
			/* @__PURE__ */ q(Tc, {
				session: e,
				state: t,
				grouping: r,
				mostHeight: i,
				hasHint: n === 0
			}),
			/* @__PURE__ */ q("div", {
				class: "lane-side",
				children: [
					/* @__PURE__ */ q(Fc, { state: t }),
					/* @__PURE__ */ q(Ic, { state: t }),
					/* @__PURE__ */ q("dl", {
						class: "facts",
						children: [
							/* @__PURE__ */ q(Pc, {
								name: "host",
								value: `${xn(t.capacities)}\u00a0×`,
								title: mn(t.hostBytes)
							}),
							/* @__PURE__ */ q(Pc, {
								name: "flash",
								value: `${xn(t.mediaBytes / a.capacity_bytes)}\u00a0×`,
								title: mn(t.mediaBytes)
							}),
							/* @__PURE__ */ q(Pc, {
								name: "collections",
								value: wn(t.collections)
							}),
							/* @__PURE__ */ q(Pc, {
								name: "requests",
								value: wn(t.requests)
							}),
							/* @__PURE__ */ q(Pc, {
								name: "pages/s",
								value: t.pagesPerSecond > 0 ? wn(t.pagesPerSecond) : "–"
							})
						]
					}),
					/* @__PURE__ */ q(Lc, { state: t })
				]
			})
		]
	});
}
function Pc({ name: e, value: t, title: n }) {
	return /* @__PURE__ */ q("div", { children: [/* @__PURE__ */ q("dt", { children: e }), /* @__PURE__ */ q("dd", {
		title: n,
		children: t
	})] });
}
function Fc({ state: e }) {
	let { marks: t, superblocks: n } = e.lane, r = Math.max(8, Math.min(n, Math.max(t.background_free_units, t.foreground_free_units) * 4)), i = (e) => `${Math.min(100, e / r * 100)}%`, a = e.freeUnits <= t.foreground_free_units ? "foreground" : e.freeUnits <= t.background_free_units ? "background" : "calm", o = {
		calm: "no collection",
		background: "background collection",
		foreground: "foreground collection"
	}[a];
	return /* @__PURE__ */ q("div", {
		class: "free-units",
		"data-tour": "free",
		"data-level": a,
		children: [
			/* @__PURE__ */ q("p", { children: [
				/* @__PURE__ */ q("b", { children: yn(e.freeUnits) }),
				" free ",
				e.freeUnits === 1 ? "unit" : "units",
				", ",
				o
			] }),
			/* @__PURE__ */ q("div", {
				class: "gauge",
				role: "img",
				"aria-label": `${bn(e.freeUnits, "free unit")}, background collection at ${t.background_free_units}, foreground at ${t.foreground_free_units}`,
				children: [
					/* @__PURE__ */ q("i", {
						class: "level",
						style: { width: i(e.freeUnits) }
					}),
					/* @__PURE__ */ q("i", {
						class: "mark",
						style: { left: i(t.foreground_free_units) }
					}),
					/* @__PURE__ */ q("i", {
						class: "mark",
						style: { left: i(t.background_free_units) }
					})
				]
			}),
			/* @__PURE__ */ q("p", {
				class: "marks",
				"aria-hidden": "true",
				children: [
					"watermarks: foreground ",
					yn(t.foreground_free_units),
					", background ",
					yn(t.background_free_units)
				]
			})
		]
	});
}
function Ic({ state: e }) {
	let { lane: t } = e, n = Dt(t.owners, an(e)), r = t.owners.map((e, t) => ({
		owner: e,
		index: t
	})).filter(({ index: t }) => {
		let n = e.owners[t];
		return n !== void 0 && (n.hostBytes > 0 || n.units > 0 || n.received > 0);
	});
	return /* @__PURE__ */ q("div", {
		class: "scroll",
		"data-tour": "handles",
		children: /* @__PURE__ */ q("table", {
			class: "numbers",
			children: [/* @__PURE__ */ q("thead", { children: /* @__PURE__ */ q("tr", { children: [
				/* @__PURE__ */ q("th", {
					scope: "col",
					children: "handle"
				}),
				/* @__PURE__ */ q("th", {
					scope: "col",
					children: "units"
				}),
				/* @__PURE__ */ q("th", {
					scope: "col",
					children: "valid"
				}),
				/* @__PURE__ */ q("th", {
					scope: "col",
					title: "Bytes that the host wrote through this handle, in drive writes",
					children: "host ×"
				}),
				/* @__PURE__ */ q("th", {
					scope: "col",
					title: "Bytes copied out of its units, in drive writes",
					children: "copied ×"
				}),
				/* @__PURE__ */ q("th", {
					scope: "col",
					title: "Write amplification of all writes through this handle so far",
					children: "own WAF"
				})
			] }) }), /* @__PURE__ */ q("tbody", { children: [r.length === 0 && /* @__PURE__ */ q("tr", {
				class: "quiet-row",
				children: [
					/* @__PURE__ */ q("th", {
						scope: "row",
						children: "none yet"
					}),
					/* @__PURE__ */ q("td", { children: "–" }),
					/* @__PURE__ */ q("td", { children: "–" }),
					/* @__PURE__ */ q("td", { children: "–" }),
					/* @__PURE__ */ q("td", { children: "–" }),
					/* @__PURE__ */ q("td", { children: "–" })
				]
			}), r.map(({ owner: r, index: i }) => {
				let a = e.owners[i];
				return a === void 0 ? null : /* @__PURE__ */ q("tr", { children: [
					/* @__PURE__ */ q("th", {
						scope: "row",
						children: [
							/* @__PURE__ */ q("i", {
								class: "swatch",
								style: { background: n[i] }
							}),
							" ",
							r.name,
							r.isolation !== null && /* @__PURE__ */ q("small", { children: r.isolation })
						]
					}),
					/* @__PURE__ */ q("td", { children: yn(a.units) }),
					/* @__PURE__ */ q("td", { children: a.units > 0 ? vn(a.validPages / (a.units * e.unitPages)) : "–" }),
					/* @__PURE__ */ q("td", {
						title: mn(a.hostBytes),
						children: r.isolation === null ? "–" : xn(a.hostBytes / t.capacity_bytes)
					}),
					/* @__PURE__ */ q("td", {
						title: `${yn(a.copiedOut)} pages`,
						children: xn(a.copiedOut * t.page_bytes / t.capacity_bytes)
					}),
					/* @__PURE__ */ q("td", { children: _n(e.ownerWaf(i)) })
				] }, i);
			})] })]
		})
	});
}
function Lc({ state: e }) {
	let t = e.result?.warnings ?? [];
	return t.length === 0 ? /* @__PURE__ */ q("div", { class: "warnings" }) : /* @__PURE__ */ q("ul", {
		class: "warnings",
		children: t.map((e) => /* @__PURE__ */ q("li", { children: /* @__PURE__ */ q(_c, { children: e }) }, e))
	});
}
// src/parts/Stage.tsx
function Rc({ session: e }) {
	e.told.value;
	let t = Cc(e.lanes.value, e.order.value?.forks ?? [], e.isDrive);
	return /* @__PURE__ */ q("div", {
		class: "headline",
		"data-tour": "headline",
		children: [/* @__PURE__ */ q("p", {
			class: "figure",
			"data-empty": t === null || t.figure === "–" ? "" : void 0,
			children: t?.figure ?? "–"
		}), /* @__PURE__ */ q("p", {
			class: "sentence",
			children: t?.sentence ?? "Waiting for the first state of the drive."
		})]
	});
}
var zc = 430;
function Bc({ session: e, isTour: t = !1 }) {
	let n = ut("handle"), r = e.lanes.value;
	if (r.length === 0) return /* @__PURE__ */ q("div", {
		class: "lanes skeleton",
		"aria-busy": "true",
		children: /* @__PURE__ */ q("article", {
			class: "lane",
			children: /* @__PURE__ */ q("div", {
				class: "unit-map-frame",
				style: { height: "380px" }
			})
		})
	});
	let i = r.some((e) => e.lane.groups > 1), a = r.some((e) => e.lane.units > 16384), o = r.length > 1 ? 400 : a ? 620 : 430, s = t ? Math.min(o, Math.max(200, globalThis.innerHeight - zc)) : o;
	return /* @__PURE__ */ q("section", {
		"aria-label": "Drive",
		children: [/* @__PURE__ */ q("div", {
			class: "bar",
			children: [
				/* @__PURE__ */ q("h2", { children: "Reclaim units" }),
				/* @__PURE__ */ q(un, {
					label: "order of units",
					value: n.value,
					onChange: (e) => n.value = e,
					choices: [
						["handle", "by handle"],
						...i ? [["group", "by reclaim group"]] : [],
						["physical", "physical order"]
					]
				}),
				/* @__PURE__ */ q(jc, {})
			]
		}), /* @__PURE__ */ q("div", {
			class: "lanes",
			"data-lanes": r.length === 1 && a ? "large" : r.length,
			children: r.map((t, r) => /* @__PURE__ */ q(Nc, {
				session: e,
				state: t,
				index: r,
				grouping: n,
				mostHeight: s
			}, `${r} ${t.lane.name}`))
		})]
	});
}
// src/parts/Transport.tsx
var Vc = [
	["0.001 ×/s", .001],
	["0.01 ×/s", .01],
	["0.05 ×/s", .05],
	["0.2 ×/s", .2],
	["1 ×/s", 1],
	["full speed", null]
], Hc = [
	1,
	100,
	1e4
], Uc = 1e4, Wc = 120;
function Gc(e) {
	let t = e.lanes.value;
	return t.length > 0 && t.every((e) => e.phase === "ended" || e.phase === "failed");
}
function Kc(e) {
	Gc(e) ? (e.seek(0), e.play()) : e.running.value ? e.pause() : e.play();
}
function qc({ session: e }) {
	e.told.value;
	let t = e.lanes.value[0], n = ut(null), r = Ce(0), i = Ce(null);
	if (xe(() => {
		let t = i.current?.getRootNode() ?? document, n = (e) => r(e), r = (t) => {
			let n = t.target;
			t.ctrlKey || t.metaKey || t.altKey || n.closest("input, select, textarea, button, dialog, [contenteditable]") !== null || (t.key === " " ? (t.preventDefault(), Kc(e)) : t.key === "." && e.step(1));
		};
		return t.addEventListener("keydown", n), () => t.removeEventListener("keydown", n);
	}, [e, t === void 0]), t === void 0) return null;
	let a = t.lane.capacity_bytes, o = e.endBytes, s = n.value ?? e.seeking.value ?? e.hostBytes, c = Gc(e), l = e.running.value && !c, u = (t, i) => {
		let a = t / Uc * o;
		n.value = i ? null : a;
		let s = performance.now();
		(i || s - r.current > Wc) && (r.current = s, e.seek(a));
	}, d = e.speed.value, f = Vc.some(([, e]) => e === null ? d === null : d !== null && Math.abs(e * a - d) < a * 1e-6);
	return /* @__PURE__ */ q("div", {
		class: "transport",
		ref: i,
		"data-tour": "time",
		role: "group",
		"aria-label": "Time",
		children: [
			/* @__PURE__ */ q("button", {
				type: "button",
				class: "play",
				onClick: () => Kc(e),
				title: c ? "Play from the beginning (Space)" : "Space",
				children: [/* @__PURE__ */ q("svg", {
					viewBox: "0 0 16 16",
					width: "16",
					height: "16",
					"aria-hidden": "true",
					children: l ? /* @__PURE__ */ q("path", { d: "M3 2h4v12H3zM9 2h4v12H9z" }) : /* @__PURE__ */ q("path", { d: "M3 1.5v13l11-6.5z" })
				}), /* @__PURE__ */ q("span", {
					class: "hidden",
					children: l ? "Pause" : c ? "Play from the beginning" : "Play"
				})]
			}),
			/* @__PURE__ */ q("div", {
				class: "steps",
				role: "group",
				"aria-label": "Step",
				children: Hc.map((t) => /* @__PURE__ */ q("button", {
					type: "button",
					onClick: () => e.step(t),
					disabled: c,
					"aria-label": `+${t >= 1e3 ? `${t / 1e3}k` : t}: step by ${t === 1 ? "a request" : `${t} requests`}`,
					title: t === 1 ? "Step by a request (.)" : `Step by ${t} requests`,
					children: ["+", t >= 1e3 ? `${t / 1e3}k` : t]
				}, t))
			}),
			/* @__PURE__ */ q("button", {
				type: "button",
				class: "to-collection",
				onClick: () => e.firstCollection(),
				title: "Go to the first garbage collection of any lane",
				children: [/* @__PURE__ */ q("svg", {
					viewBox: "0 0 16 16",
					width: "16",
					height: "16",
					"aria-hidden": "true",
					children: /* @__PURE__ */ q("path", { d: "M2 2h2v12H2zM6 3.5h4v4H6zM11 3.5h3v4h-3zM6 8.5h4v4H6z" })
				}), /* @__PURE__ */ q("span", { children: "First collection" })]
			}),
			/* @__PURE__ */ q("div", {
				class: "slider",
				children: [/* @__PURE__ */ q("input", {
					type: "range",
					min: 0,
					max: Uc,
					step: 1,
					value: o === 0 ? 0 : Math.round(s / o * Uc),
					"aria-label": "Position in the run",
					"aria-valuetext": `${xn(s / a)} of ${xn(o / a)} drive writes`,
					onInput: (e) => u(Number(e.currentTarget.value), !1),
					onChange: (e) => u(Number(e.currentTarget.value), !0),
					style: { "--at": `${o === 0 ? 0 : Math.min(100, s / o * 100)}%` }
				}), (e.order.value?.forks ?? []).map((e, t) => /* @__PURE__ */ q("i", {
					class: "fork-mark",
					style: { left: `${Math.min(100, e.at_host_bytes / o * 100)}%` },
					title: `fork: ${e.name}`
				}, t))]
			}),
			/* @__PURE__ */ q("output", {
				class: "position",
				title: mn(s),
				children: [
					/* @__PURE__ */ q("b", { children: xn(s / a) }),
					" of ",
					xn(o / a),
					" ",
					/* @__PURE__ */ q("span", { children: "drive writes" })
				]
			}),
			/* @__PURE__ */ q("label", {
				class: "speed",
				children: [/* @__PURE__ */ q("span", {
					class: "hidden",
					children: "Speed"
				}), /* @__PURE__ */ q("select", {
					value: f ? String(Vc.findIndex(([, e]) => e === null ? d === null : d !== null && Math.abs(e * a - d) < a * 1e-6)) : "given",
					onChange: (t) => {
						let n = Vc[Number(t.currentTarget.value)]?.[1];
						n !== void 0 && e.setSpeed(n === null ? null : n * a);
					},
					children: [Vc.map(([e], t) => /* @__PURE__ */ q("option", {
						value: t,
						children: e
					}, e)), !f && /* @__PURE__ */ q("option", {
						value: "given",
						children: [mn(d ?? 0), "/s"]
					})]
				})]
			})
		]
	});
}
// src/state/host.ts
function Jc(e) {
	let t = e.dataset.jpThemeLight;
	return t === "true" ? "light" : t === "false" ? "dark" : e.classList.contains("vscode-light") || e.classList.contains("vscode-high-contrast-light") ? "light" : e.classList.contains("vscode-dark") || e.classList.contains("vscode-high-contrast") ? "dark" : "system";
}
function Yc(e) {
	let t = () => {
		Vs.value = Jc(document.body), Vs.value === "system" ? delete e.dataset.theme : e.dataset.theme = Vs.value;
	};
	t();
	let n = new MutationObserver(t);
	return n.observe(document.body, {
		attributes: !0,
		attributeFilter: ["class", "data-jp-theme-light"]
	}), () => n.disconnect();
}
// src/wire/api.ts
var Xc = "warp.token", Zc = class extends Error {
	status;
	line;
	constructor(e, t, n = null) {
		super(t), this.status = e, this.line = n;
	}
}, Qc = class e {
	base;
	token;
	constructor(e, t) {
		this.base = e.replace(/\/+$/, ""), this.token = t;
	}
	static ofPage() {
		let t = new URL(location.href), n = t.searchParams.get("token");
		return n !== null && (sessionStorage.setItem(Xc, n), t.searchParams.delete("token"), history.replaceState(null, "", t)), new e(t.origin, sessionStorage.getItem(Xc));
	}
	async ask(e, t, n) {
		let r = {};
		this.token !== null && (r.Authorization = `Bearer ${this.token}`), n !== void 0 && (r["Content-Type"] = "application/json");
		let i;
		try {
			i = await fetch(this.base + t, {
				method: e,
				headers: r,
				body: n === void 0 ? null : JSON.stringify(n),
				keepalive: e === "DELETE"
			});
		} catch {
			throw new Zc(0, "The server does not answer. Start it again with `warp studio`. The page then reconnects automatically.");
		}
		if (i.ok) return i;
		let a = await i.json().catch(() => null), o = typeof a == "object" && a && "error" in a && typeof a.error == "string" ? a.error : `The server answered ${i.status} to ${e} ${t}.`, s = typeof a == "object" && a && "line" in a && typeof a.line == "number" ? a.line : null;
		throw new Zc(i.status, o, s);
	}
	async json(e) {
		return await (await this.ask("GET", e)).json();
	}
	about = () => this.json("/api/about");
	catalogue = () => this.json("/api/catalogue");
	options = () => this.json("/api/options");
	sessions = () => this.json("/api/sessions");
	runs = () => this.json("/api/runs");
	compare = (e, t) => this.json(`/api/compare/${encodeURIComponent(e)}/${encodeURIComponent(t)}`);
	drive = () => this.json("/api/drive");
	order = (e) => this.json(`/api/sessions/${encodeURIComponent(e)}/order`);
	async text(e, t) {
		return (await this.ask("GET", `/api/text/${e}/${encodeURIComponent(t)}`)).text();
	}
	async check(e, t, n = "workload") {
		return (await (await this.ask("POST", "/api/check", {
			name: e,
			text: t,
			kind: n
		})).json()).problems;
	}
	async begin(e) {
		return (await (await this.ask("POST", "/api/sessions", e)).json()).id;
	}
	async end(e) {
		await this.ask("DELETE", `/api/sessions/${encodeURIComponent(e)}`);
	}
	async rename(e, t) {
		await this.ask("POST", `/api/sessions/${encodeURIComponent(e)}/name`, { name: t });
	}
	async export(e, t) {
		return (await this.ask("GET", `/api/sessions/${encodeURIComponent(e)}/export/${t}`)).blob();
	}
	async snapshot() {
		return await (await this.ask("POST", "/api/drive/snapshot")).json();
	}
	async resetStatistics() {
		return (await (await this.ask("POST", "/api/drive/reset-statistics")).json()).since_unix_ms;
	}
	async planFaults(e) {
		return (await (await this.ask("POST", "/api/drive/faults", { text: e })).json()).faults;
	}
	async clearFaults() {
		return (await (await this.ask("DELETE", "/api/drive/faults")).json()).faults;
	}
	socket(e) {
		let t = this.base.replace(/^http/, "ws") + e, n = this.token === null ? [] : [`warp.token.${$c(new TextEncoder().encode(this.token))}`], r = new WebSocket(t, n);
		return r.binaryType = "arraybuffer", r;
	}
};
function $c(e) {
	let t = "";
	for (let n of e) t += String.fromCharCode(n);
	return btoa(t).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
// src/wire/live.ts
var el = 300, tl = 8e3;
function nl(e) {
	return Math.min(tl, el * 1.7 ** e);
}
var rl = class {
	api;
	path;
	listener;
	isKnown;
	socket = null;
	tries = 0;
	timer;
	closed = !1;
	constructor(e, t, n, r) {
		this.api = e, this.path = t, this.listener = r, this.isKnown = n, this.open();
	}
	async open() {
		this.listener.onConnection(this.tries === 0 ? "connecting" : "lost");
		try {
			await this.isKnown(this.api);
		} catch (e) {
			if (this.closed) return;
			if (e instanceof Zc && e.status === 404) {
				this.closed = !0, this.listener.onConnection("gone");
				return;
			}
			e instanceof Zc && e.status !== 0 && this.listener.onTrouble(e.message), this.again();
			return;
		}
		if (this.closed) return;
		let e = this.api.socket(this.path);
		this.socket = e, e.onopen = () => {
			this.tries = 0, this.listener.onConnection("live");
		}, e.onmessage = (e) => this.take(e.data), e.onclose = () => {
			this.socket === e && (this.socket = null), this.closed || this.again();
		};
	}
	take(e) {
		try {
			typeof e == "string" ? this.listener.onMessage(JSON.parse(e)) : this.listener.onFrame(new St(e));
		} catch (e) {
			if (!(e instanceof xt || e instanceof SyntaxError)) throw e;
			this.listener.onTrouble(e.message);
		}
	}
	again() {
		this.tries += 1, this.listener.onConnection("lost"), this.timer = setTimeout(() => void this.open(), nl(this.tries - 1));
	}
	send(e) {
		return this.socket?.readyState === WebSocket.OPEN && (this.socket.send(JSON.stringify(e)), !0);
	}
	close() {
		this.closed = !0, clearTimeout(this.timer), this.socket?.close();
	}
}, il = 64, al = class {
	values = /* @__PURE__ */ new Float64Array(256);
	length = 0;
	push(e) {
		if (this.length === this.values.length) {
			let e = new Float64Array(this.length * 2);
			e.set(this.values), this.values = e;
		}
		this.values[this.length] = e, this.length += 1;
	}
	at(e) {
		return this.values[e] ?? NaN;
	}
	clear() {
		this.length = 0;
	}
}, ol = class {
	lane;
	phase = "waiting";
	hostBytes = 0;
	mediaBytes = 0;
	filledBytes = 0;
	nowNs = 0;
	collections = 0;
	requests = 0;
	freeUnits = 0;
	pagesPerSecond = 0;
	eventsLeftOut = 0;
	owners = [];
	state;
	owner;
	group;
	valid;
	written;
	span;
	openedPages;
	changed;
	changedCount = 0;
	generation = 0;
	isChanged;
	sampleHost = new al();
	sampleMedia = new al();
	sampleOwnerHost;
	sampleOwnerCopied;
	events = [];
	eventNumber = 0;
	moves = [];
	result = null;
	latency = null;
	wear = null;
	constructor(e) {
		this.lane = e;
		let t = e.units;
		this.state = new Uint8Array(t), this.owner = new Uint8Array(t).fill(255), this.group = new Uint16Array(t), this.valid = new Uint32Array(t), this.written = new Uint32Array(t), this.span = new Uint8Array(t).fill(1), this.openedPages = new Uint32Array(t), this.changed = new Uint32Array(t), this.isChanged = new Uint8Array(t), this.freeUnits = t, this.sampleOwnerHost = e.owners.map(() => new al()), this.sampleOwnerCopied = e.owners.map(() => new al()), this.forget();
	}
	fits(e) {
		let t = this.lane;
		return t.units === e.units && t.owners.length === e.owners.length && t.unit_pages === e.unit_pages && t.device === e.device;
	}
	forget() {
		this.state.fill(0), this.owner.fill(255), this.valid.fill(0), this.written.fill(0), this.span.fill(1), this.openedPages.fill(0);
		let e = Math.max(1, Math.ceil(this.lane.units / Math.max(1, this.lane.groups)));
		for (let t = 0; t < this.lane.units; t += 1) this.group[t] = Math.floor(t / e), this.note(t);
		this.sampleHost.clear(), this.sampleMedia.clear();
		for (let e of this.sampleOwnerHost) e.clear();
		for (let e of this.sampleOwnerCopied) e.clear();
		this.events = [], this.moves = [], this.eventsLeftOut = 0, this.result = null, this.generation += 1;
	}
	note(e) {
		this.isChanged[e] !== 1 && (this.isChanged[e] = 1, this.changed[this.changedCount] = e, this.changedCount += 1);
	}
	taken() {
		for (let e = 0; e < this.changedCount; e += 1) this.isChanged[this.changed[e]] = 0;
		this.changedCount = 0;
	}
	apply(e) {
		e.whole && this.forget(), this.phase = e.phase, this.hostBytes = e.hostBytes, this.mediaBytes = e.mediaBytes, this.filledBytes = e.filledBytes, this.nowNs = e.nowNs, this.collections = e.collections, this.requests = e.requests, this.freeUnits = e.freeUnits, this.pagesPerSecond = e.pagesPerSecond, this.eventsLeftOut += e.eventsLeftOut, this.applyOwners(e), this.applyEvents(e), this.applyUnits(e), this.applySamples(e);
	}
	applyOwners(e) {
		for (; this.owners.length < e.owners;) this.owners.push({
			hostBytes: 0,
			copiedOut: 0,
			received: 0,
			validPages: 0,
			units: 0,
			reclaimed: 0
		});
		for (let t = 0; t < e.owners; t += 1) {
			let n = this.owners[t];
			n.hostBytes = e.ownerHostBytes(t), n.copiedOut = e.ownerCopiedOut(t), n.received = e.ownerReceived(t), n.validPages = e.ownerValidPages(t), n.units = e.ownerUnits(t), n.reclaimed = e.ownerReclaimed(t);
		}
	}
	applyUnits(e) {
		for (let t = 0; t < e.units; t += 1) {
			let n = e.unit(t);
			if (n >= this.state.length) continue;
			let r = e.unitState(t);
			this.state[n] = r, this.owner[n] = r === 0 ? 255 : e.unitOwner(t), this.group[n] = e.unitGroup(t), this.valid[n] = e.unitValid(t), this.written[n] = e.unitWritten(t), this.slices > 1 && this.spread(n), this.note(n);
		}
	}
	get slices() {
		return Math.max(1, Math.min(255, Math.round(this.lane.units / Math.max(1, this.lane.superblocks))));
	}
	spread(e) {
		let t = this.state[e] === 0;
		t && (this.openedPages[e] = 0);
		let n = Math.max(this.openedPages[e], this.written[e]), r = t ? 1 : Math.max(1, Math.min(this.slices, Math.ceil(n / this.unitPages))), i = Math.max(1, this.span[e]);
		this.span[e] = r;
		for (let t = 1; t < Math.max(r, i) && e + t < this.span.length; t += 1) this.span[e + t] = t < r ? 0 : 1, this.note(e + t);
	}
	unitOf(e) {
		let t = e;
		for (; t > 0 && this.span[t] === 0;) --t;
		return t;
	}
	pagesOf(e) {
		return Math.max(1, this.span[this.unitOf(e)]) * this.unitPages;
	}
	applyEvents(e) {
		for (let t = 0; t < e.events; t += 1) {
			let n = e.event(t);
			n.number = this.eventNumber, this.eventNumber += 1, this.events.push(n), n.kind === "open" && n.unit < this.openedPages.length && (this.openedPages[n.unit] = n.pages), n.kind === "reclaim" && this.moves.length < il && this.moves.push(n);
		}
		this.events.length > 8192 && (this.events = this.events.slice(-4096));
	}
	applySamples(e) {
		let t = Math.min(e.owners, this.sampleOwnerHost.length);
		for (let n = 0; n < e.samples; n += 1) {
			this.sampleHost.push(e.sampleHostBytes(n)), this.sampleMedia.push(e.sampleMediaBytes(n));
			for (let r = 0; r < t; r += 1) this.sampleOwnerHost[r]?.push(e.sampleOwnerHostBytes(n, r)), this.sampleOwnerCopied[r]?.push(e.sampleOwnerCopied(n, r));
		}
	}
	get gaps() {
		return (this.lane.unwatched ?? []).map((e) => ({
			from: e.from_host_bytes,
			to: e.to_host_bytes
		}));
	}
	get unitPages() {
		return Math.max(1, this.lane.unit_pages);
	}
	get waf() {
		return this.hostBytes > 0 ? this.mediaBytes / this.hostBytes : null;
	}
	get capacities() {
		return this.hostBytes / this.lane.capacity_bytes;
	}
	ownerWaf(e) {
		let t = this.owners[e];
		return t === void 0 || t.hostBytes === 0 ? null : (t.hostBytes + t.copiedOut * this.lane.page_bytes) / t.hostBytes;
	}
	isOpen(e) {
		let t = this.state[e];
		return t === 1 || t === 2;
	}
};
// src/state/permalink.ts
function sl(e) {
	let t = (e) => Object.fromEntries(Object.entries(e).sort(([e], [t]) => e < t ? -1 : 1)), { name: n, experiment: r, workload: i, device: a, scale: o, drive_writes: s, precondition_drive_writes: c, timed: l, seed: u, lanes: d, forks: f, ...p } = e;
	return {
		...n === void 0 ? {} : { name: n },
		experiment: r,
		workload: i === null ? null : i.text === void 0 ? { name: i.name } : {
			name: i.name,
			text: i.text
		},
		device: a,
		scale: o,
		drive_writes: s,
		precondition_drive_writes: c,
		timed: l,
		seed: u,
		lanes: d.map((e) => ({
			name: e.name,
			variants: e.variants,
			set: t(e.set)
		})),
		forks: f.map((e) => ({
			of: e.of,
			name: e.name,
			at_host_bytes: e.at_host_bytes,
			set: t(e.set)
		})),
		...t(p)
	};
}
function cl(e, t) {
	let n = ({ name: e, ...t }) => JSON.stringify(sl({
		...t,
		forks: []
	}));
	return n(e) === n(t);
}
// src/state/session.ts
var ll = 120, ul = class e {
	api;
	id;
	name = U("");
	title = U("");
	lanes = U([]);
	running = U(!1);
	speed = U(null);
	connection = U("connecting");
	problem = U(null);
	order = U(null);
	hosts = U(null);
	faults = U(null);
	drawn = U(0);
	told = U(0);
	seeking = U(null);
	live;
	toldAt = 0;
	toldTimer;
	constructor(e, t, n, r) {
		this.api = e, this.id = t, this.live = new rl(e, n, r, this);
	}
	static of(t, n) {
		let r = `/api/sessions/${encodeURIComponent(n)}/live`, i = new e(t, n, r, async (e) => {
			let t = await e.order(n), r = i.order.peek();
			if (r !== null && !cl(r, t)) throw new Zc(404, `Session ${n} shows another run now.`);
		});
		return i;
	}
	static ofDrive(t) {
		return new e(t, "drive", "/api/drive/live", (e) => e.drive());
	}
	get isDrive() {
		return this.id === "drive";
	}
	onConnection(e) {
		this.connection.value = e;
	}
	onTrouble(e) {
		this.problem.value = e;
	}
	onFrame(e) {
		let t = performance.now(), n = this.lanes.value[e.lane];
		n !== void 0 && (n.apply(e), this.seeking.value !== null && (this.seeking.value = null), this.drawn.value += 1, this.tell(), Ct.frame(performance.now() - t));
	}
	tell() {
		let e = performance.now();
		e - this.toldAt >= ll ? (this.toldAt = e, this.told.value += 1) : this.toldTimer ??= setTimeout(() => {
			this.toldTimer = void 0, this.toldAt = performance.now(), this.told.value += 1;
		}, ll);
	}
	onMessage(e) {
		switch (e.type) {
			case "session":
				Ie(() => {
					this.name.value = e.name ?? e.title, this.title.value = e.title, this.running.value = e.running, this.speed.value = e.speed, this.take(e.lanes);
				}), this.isDrive || this.learnOrder();
				break;
			case "error":
				this.problem.value = e.message;
				break;
			case "result":
				this.with(e.lane, (t) => t.result = e.result);
				break;
			case "latency":
				this.with(e.lane, (t) => t.latency = e);
				break;
			case "wear":
				this.with(e.lane, (t) => t.wear = e.wear);
				break;
			case "hosts": this.hosts.value = e, this.faults.value = e.faults ?? null;
		}
	}
	with(e, t) {
		let n = this.lanes.value[e];
		n !== void 0 && (t(n), this.tell());
	}
	take(e) {
		let t = this.lanes.value;
		this.lanes.value = e.map((e, n) => {
			let r = t[n];
			return r === void 0 || !r.fits(e) || r.lane.name !== e.name ? new ol(e) : (r.lane = e, r);
		});
	}
	async learnOrder() {
		try {
			this.order.value = await this.api.order(this.id);
		} catch {
			this.order.value = null;
		}
	}
	send(e) {
		this.live.send(e) ? this.problem.value !== null && (this.problem.value = null) : this.problem.value = "The page is not connected, so the command was not sent. The page reconnects automatically.";
	}
	play() {
		this.running.value = !0, this.send({ do: "play" });
	}
	pause() {
		this.running.value = !1, this.send({ do: "pause" });
	}
	setSpeed(e) {
		this.speed.value = e, this.send({
			do: "speed",
			host_bytes_per_second: e
		});
	}
	step(e) {
		this.running.value = !1, this.send({
			do: "step",
			requests: e
		});
	}
	seek(e) {
		this.seeking.value = e, this.send({
			do: "seek",
			host_bytes: Math.max(0, Math.round(e))
		});
	}
	firstCollection() {
		this.running.value = !1, this.send({ do: "first_collection" });
	}
	fork(e, t, n) {
		this.send({
			do: "fork",
			lane: e,
			name: t,
			set: n
		});
	}
	drop(e) {
		this.send({
			do: "drop",
			lane: e
		});
	}
	get endBytes() {
		let e = 0;
		for (let t of this.lanes.value) e = Math.max(e, t.lane.write_bytes ?? Math.max(t.lane.capacity_bytes, t.hostBytes * 1.1));
		return e;
	}
	get hostBytes() {
		return Math.max(0, ...this.lanes.value.map((e) => e.hostBytes));
	}
	close() {
		clearTimeout(this.toldTimer), this.live.close();
	}
}, dl = ".uplot,.uplot *,.uplot :before,.uplot :after{box-sizing:border-box}.uplot{width:min-content;font-family:system-ui,-apple-system,Segoe UI,Roboto,Helvetica Neue,Arial,Noto Sans,sans-serif,Apple Color Emoji,Segoe UI Emoji,Segoe UI Symbol,Noto Color Emoji;line-height:1.5}.u-title{text-align:center;font-size:18px;font-weight:700}.u-wrap{-webkit-user-select:none;user-select:none;position:relative}.u-over,.u-under{position:absolute}.u-under{overflow:hidden}.uplot canvas{width:100%;height:100%;display:block;position:relative}.u-axis{position:absolute}.u-legend{text-align:center;margin:auto;font-size:14px}.u-inline{display:block}.u-inline *{display:inline-block}.u-inline tr{margin-right:16px}.u-legend th{font-weight:600}.u-legend th>*{vertical-align:middle;display:inline-block}.u-legend .u-marker{width:1em;height:1em;margin-right:4px;background-clip:padding-box!important}.u-inline.u-live th:after{content:\":\";vertical-align:middle}.u-inline:not(.u-live) .u-value{display:none}.u-series>*{padding:4px}.u-series th{cursor:pointer}.u-legend .u-off>*{opacity:.3}.u-select{pointer-events:none;background:#00000012;position:absolute}.u-cursor-x,.u-cursor-y{pointer-events:none;will-change:transform;position:absolute;top:0;left:0}.u-hz .u-cursor-x,.u-vt .u-cursor-y{border-right:1px dashed #607d8b;height:100%}.u-hz .u-cursor-y,.u-vt .u-cursor-x{border-bottom:1px dashed #607d8b;width:100%}.u-cursor-pt{pointer-events:none;will-change:transform;border:0 solid;border-radius:50%;position:absolute;top:0;left:0;background-clip:padding-box!important}.u-axis.u-off,.u-select.u-off,.u-cursor-x.u-off,.u-cursor-y.u-off,.u-cursor-pt.u-off{display:none}", fl = ":root,.warp-studio{--lightningcss-light:initial;--lightningcss-dark: ;color-scheme:light dark;--paper:var(--lightningcss-light,#fff)var(--lightningcss-dark,#0d1117);--raised:var(--lightningcss-light,#f6f8fa)var(--lightningcss-dark,#161b22);--ink:var(--lightningcss-light,#1f2328)var(--lightningcss-dark,#e6edf3);--muted:var(--lightningcss-light,#59636e)var(--lightningcss-dark,#9198a1);--line:var(--lightningcss-light,#d9dee3)var(--lightningcss-dark,#2b323b);--edge:var(--lightningcss-light,#818b98)var(--lightningcss-dark,#656c76);--free:var(--lightningcss-light,#edf0f2)var(--lightningcss-dark,#20262e);--link:var(--lightningcss-light,#0550ae)var(--lightningcss-dark,#79b8ff);--focus:var(--lightningcss-light,#0072b2)var(--lightningcss-dark,#56b4e9);--alarm:var(--lightningcss-light,#a40e26)var(--lightningcss-dark,#ff8182);--alarm-paper:var(--lightningcss-light,#fff1f0)var(--lightningcss-dark,#2a1516);--wait-paper:var(--lightningcss-light,#fff8e6)var(--lightningcss-dark,#241d0c);--code-name:var(--lightningcss-light,#0550ae)var(--lightningcss-dark,#79b8ff);--code-value:var(--lightningcss-light,#7a3e00)var(--lightningcss-dark,#f0a868);--sans:system-ui, -apple-system, \"Segoe UI\", Roboto, \"Noto Sans\", \"Liberation Sans\", sans-serif;--mono:ui-monospace, \"SF Mono\", \"Cascadia Mono\", \"Noto Sans Mono\", \"Liberation Mono\", monospace;--s:.75rem;--m:.875rem;--l:1rem;--xl:1.25rem;--xxl:1.75rem;--huge:2.75rem;--radius:6px;--page:1480px}@media (prefers-color-scheme:dark){:root,.warp-studio{--lightningcss-light: ;--lightningcss-dark:initial}}:root[data-theme=light],.warp-studio[data-theme=light]{--lightningcss-light:initial;--lightningcss-dark: ;color-scheme:light}:root[data-theme=dark],.warp-studio[data-theme=dark]{--lightningcss-light: ;--lightningcss-dark:initial;color-scheme:dark}*,:before,:after{box-sizing:border-box}html{background:var(--paper);scroll-padding:64px 0 96px}body,.warp-studio{background:var(--paper);color:var(--ink);font:var(--m) / 1.5 var(--sans);font-variant-numeric:tabular-nums;-webkit-text-size-adjust:100%;margin:0}h1,h2,p,dl,dd,ul,ol,figure,fieldset{margin:0;padding:0}ul,ol{list-style:none}h1{font-size:var(--xl);text-wrap:balance;font-weight:650;line-height:1.3}h2{font-size:var(--l);font-weight:650;line-height:1.4}small{font-size:var(--s);color:var(--muted);margin-left:4px;font-weight:400}a{color:var(--link);text-underline-offset:3px}code{font-family:var(--mono);font-size:.93em}.hidden{clip-path:inset(50%);white-space:nowrap;width:1px;height:1px;position:absolute;left:0;overflow:hidden}.note,.empty,figcaption{color:var(--muted);max-width:68ch}.empty{padding:16px 0}.lead{font-size:var(--l);color:var(--muted);max-width:60ch;margin-top:4px}button,select,input[type=text],input[type=search],input[type=number]{font:inherit;color:var(--ink);background:var(--paper);border:1px solid var(--edge);border-radius:var(--radius);max-width:100%;height:32px;padding:0 10px}select{text-overflow:ellipsis;padding:0 6px}button{cursor:pointer;white-space:nowrap;font-weight:550}button:hover:not(:disabled),select:hover{border-color:var(--ink)}button:disabled{color:var(--muted);border-color:var(--line);cursor:default}button.primary{background:var(--ink);color:var(--paper);border-color:var(--ink)}button.primary:disabled{background:var(--raised);color:var(--muted);border-color:var(--line)}button.large{height:44px;font-size:var(--l);padding:0 28px}button.quiet{color:var(--muted);background:0 0;border-color:#0000;padding:0 6px;font-weight:400}button.link{color:var(--link);text-underline-offset:3px;background:0 0;border:0;height:auto;padding:0;font-weight:400;text-decoration:underline}::placeholder{color:var(--muted);opacity:1}:focus-visible{outline:2px solid var(--focus);outline-offset:2px}main:focus{outline:none}fieldset{border:0;min-width:0;position:relative}label{position:relative}legend{margin-bottom:8px;padding:0;font-weight:650}legend em{color:var(--muted);font-style:normal;font-weight:400}.inline{color:var(--muted);align-items:center;gap:6px;display:inline-flex}.below .bar h2{min-width:3.6em}.bar{flex-wrap:wrap;align-items:center;gap:8px 16px;margin-bottom:12px;display:flex}.choice{background:var(--raised);border-radius:var(--radius);box-shadow:inset 0 0 0 1px var(--line);scrollbar-width:none;max-width:100%;display:inline-flex;overflow-x:auto}.choice label{cursor:pointer;display:block;position:relative}.choice input{opacity:0;width:1px;height:1px;position:absolute}.choice span{border-radius:var(--radius);height:32px;color:var(--muted);white-space:nowrap;border:1px solid #0000;align-items:center;padding:0 12px;display:grid}.choice span:hover{color:var(--ink)}.choice input:checked+span{background:var(--paper);color:var(--ink);border-color:var(--edge);font-weight:550}.choice input:focus-visible+span{outline:2px solid var(--focus);outline-offset:-2px}.skip{position:absolute;left:-999px}.skip:focus{z-index:9;background:var(--paper);padding:8px;top:8px;left:8px}.top{z-index:5;height:52px;padding:0 max(24px, calc((100vw - var(--page)) / 2));background:var(--paper);border-bottom:1px solid var(--line);align-items:center;gap:24px;display:flex;position:sticky;top:0}.top .mark{color:var(--ink);font-size:var(--l);white-space:nowrap;align-items:center;gap:10px;text-decoration:none;display:flex}.top .mark b{font-weight:650}.pale{fill:var(--edge)}.top nav{gap:20px;height:100%;display:flex}.top nav a{color:var(--muted);border-top:2px solid #0000;border-bottom:2px solid #0000;align-items:center;text-decoration:none;display:flex}.top nav a:hover{color:var(--ink)}.top nav a[aria-current]{color:var(--ink);border-bottom-color:var(--ink);font-weight:550}.theme{margin-left:auto}.actions[hidden]{display:none}.theme{color:var(--muted);align-items:center;display:flex}.theme circle{fill:none;stroke:currentColor;stroke-width:1.5px}.theme path{fill:currentColor}.theme select{color:var(--muted);background:var(--paper);border-color:#0000}main{max-width:var(--page);margin:0 auto;padding:32px 24px 64px}main.narrow{max-width:720px}.notice{border-radius:var(--radius);border:1px solid var(--edge);background:var(--raised);justify-content:space-between;align-items:flex-start;gap:12px;margin:8px 0 16px;padding:10px 14px;display:flex}.notice p{overflow-wrap:anywhere;max-width:90ch}.notice.waiting{background:var(--wait-paper)}.notice.error{background:var(--alarm-paper);border-color:var(--alarm)}.notice button{height:24px}.skeleton,.skeleton .unit-map-frame{background:var(--raised);border-radius:var(--radius)}.intro{margin-bottom:28px}.intro h1{font-size:var(--huge);letter-spacing:-.02em;margin-bottom:12px;line-height:1.1}.intro p{font-size:var(--l);color:var(--muted);max-width:62ch}.intro p+p{margin-top:8px}.running{border-top:1px solid var(--line);padding:16px 0 20px}.running ul{border-bottom:1px solid var(--line);margin-top:6px}.running li{border-top:1px solid var(--line);grid-template-columns:minmax(0,3fr) minmax(0,2fr) auto;align-items:center;gap:4px 16px;padding:4px 0;display:grid}.running li>a{overflow-wrap:anywhere}.running li>span{color:var(--muted)}.columns{grid-template-columns:minmax(0,5fr) minmax(0,6fr);gap:24px 56px;min-height:560px;margin-top:24px;display:grid}.columns.own{grid-template-columns:minmax(0,1fr) minmax(0,1fr)}.pick{min-width:0}.pick input[type=search],.compare>input[type=search]{width:100%;height:40px;margin-bottom:8px}.choices{border-top:1px solid var(--line);border-bottom:1px solid var(--line);max-height:620px;overflow-y:auto}.choices li+li{border-top:1px solid var(--line)}.choices label{cursor:pointer;display:block;position:relative}.choices input{opacity:0;position:absolute}.choices span{border-left:3px solid #0000;padding:10px 12px 10px 14px;display:block}.choices b{font-weight:500;line-height:1.35;display:block}.choices code{color:var(--muted);font-size:var(--s)}.choices span:hover{background:var(--raised)}.choices input:checked+span{border-left-color:var(--ink);background:var(--raised)}.choices input:checked+span b{font-weight:650}.choices input:focus-visible+span{outline:2px solid var(--focus);outline-offset:-2px}.form{flex-direction:column;gap:24px;min-width:0;display:flex}.form h2{font-size:var(--xl);line-height:1.3}.fields{flex-wrap:wrap;gap:12px 16px;display:flex}.fields legend{float:left;width:100%;margin-bottom:0}.fields label,dialog label{color:var(--muted);font-size:var(--s);flex-direction:column;gap:4px;display:flex}.fields select,.fields input[type],dialog select,dialog input[type]{font-size:var(--m);width:11em}.fields .wide select{width:min(100%,32em)}.fields .wide{width:100%}.chips legend{align-items:baseline;gap:10px;display:flex}.chip{cursor:pointer;margin:0 8px 8px 0;display:inline-block;position:relative}.chip input{opacity:0;position:absolute}.chip span{border:1px solid var(--edge);border-radius:99px;padding:5px 12px;display:inline-block}.chip span:hover{border-color:var(--ink)}.chip input:checked+span{background:var(--ink);color:var(--paper);border-color:var(--ink)}.chip input:focus-visible+span{outline:2px solid var(--focus);outline-offset:2px}.begin{border-top:1px solid var(--line);flex-wrap:wrap;justify-content:space-between;align-items:center;gap:12px 24px;padding-top:16px;display:flex}.begin .notice{width:100%;margin:0}.begin p{max-width:48ch}.lane-list li{border-top:1px solid var(--line);grid-template-columns:10em minmax(0,1fr) 28px;align-items:center;gap:10px;padding:5px 0;display:grid}.lane-list ul{border-bottom:1px solid var(--line);margin-bottom:8px}.lane-list li span{color:var(--muted);overflow-wrap:anywhere;font-family:var(--mono);font-size:var(--s)}.lane-list .fields{align-items:flex-end}.editor{border:1px solid var(--edge);border-radius:var(--radius);background:var(--paper);height:520px;overflow:hidden}.editor .cm-editor{height:100%}.editor .cm-scroller{font:13px/1.55 var(--mono)}.editor .cm-editor.cm-focused{outline:none}.editor:focus-within{outline:2px solid var(--focus);outline-offset:1px}.editor .cm-gutters{background:var(--raised);color:var(--muted);border-right:1px solid var(--line)}.editor .cm-activeLine,.editor .cm-activeLineGutter{background:color-mix(in srgb, var(--ink) 5%, transparent)}.editor .cm-cursor{border-left-color:var(--ink)}.editor .cm-tooltip{background:var(--paper);color:var(--ink);border:1px solid var(--edge);border-radius:var(--radius);font-size:13px;overflow:hidden}.editor .cm-tooltip-autocomplete ul li[aria-selected]{background:var(--ink);color:var(--paper)}.editor .cm-completionInfo{max-width:320px;padding:8px 10px}.editor .cm-diagnostic-error{border-left-color:var(--alarm)}.problems{color:var(--alarm);min-height:1.5em;margin-top:8px}.upload{border:1px dashed var(--edge);border-radius:var(--radius);text-align:center;height:200px;color:var(--muted);cursor:pointer;place-items:center;padding:24px;display:grid}.upload:hover{border-color:var(--ink)}.upload input{max-width:100%}.run{padding-bottom:40px}.run-head{flex-wrap:wrap;justify-content:space-between;align-items:center;gap:8px 24px;display:flex}.run-head h1{font-size:var(--m);color:var(--muted);text-overflow:ellipsis;min-width:0;min-height:1.3em;font-weight:500;overflow:hidden}.named,.naming{flex-wrap:wrap;flex:22em;align-items:center;gap:2px 10px;min-width:0;display:flex}.named h1{color:var(--ink);overflow-wrap:anywhere;font-weight:550}.named .note{width:100%;max-width:none;font-size:var(--s)}.naming input{width:min(24em,100%)}.actions{flex-wrap:wrap;gap:8px;display:flex}.export select{width:9.5em;font-weight:550}.headline{border-bottom:1px solid var(--line);grid-template-columns:auto minmax(0,1fr);align-items:baseline;gap:4px 20px;margin-bottom:20px;padding:12px 0 24px;display:grid}.headline .figure{font-size:var(--huge);letter-spacing:-.02em;min-width:3.1em;font-weight:650;line-height:1.15}.headline .figure[data-empty]{color:var(--muted);font-weight:400}.headline .sentence{font-size:var(--xl);text-wrap:pretty;min-height:1.35em;line-height:1.35}.lanes{grid-template-columns:repeat(var(--columns,1), minmax(0, 1fr));gap:32px;display:grid}.lanes[data-lanes=\"2\"],.lanes[data-lanes=\"4\"]{--columns:2}.lanes[data-lanes=\"3\"],.lanes[data-lanes=\"5\"],.lanes[data-lanes=\"6\"]{--columns:3}.lanes[data-lanes=\"7\"],.lanes[data-lanes=\"8\"]{--columns:4}.lane{grid-template-columns:minmax(0,1fr);align-content:start;gap:14px;min-width:0;display:grid;container-type:inline-size}.lane-side{grid-template-columns:minmax(0,1fr);align-content:start;gap:16px;display:grid}@media (min-width:1101px){.lanes[data-lanes=\"1\"] .lane{grid-template-columns:minmax(0,1fr) 400px;gap:14px 48px}.lanes[data-lanes=\"1\"] .lane-head{grid-column:1/-1}.lanes[data-lanes=\"1\"] .lane-side{gap:24px;padding-top:4px}}@media (min-width:700px){.lanes[data-lanes=\"1\"] .unit-line{min-height:1.5em}}.lane-head{grid-template-columns:minmax(0,1fr) auto;align-items:baseline;gap:0 16px;display:grid}.lane-name{align-items:center;gap:10px;min-width:0;height:32px;display:flex}.lane-name .lane-tag{flex:none}.lane-name h2{text-overflow:ellipsis;white-space:nowrap;font-size:var(--xl);overflow:hidden}.lane-tag{align-items:center;gap:6px;display:inline-flex}.lane-tag b{border:1px solid var(--ink);width:22px;height:22px;font-size:var(--s);border-radius:4px;place-items:center;display:inline-grid}.lane-tag line.ink{stroke:var(--ink)}.lane-tag line.muted{stroke:var(--muted)}.lane-waf{white-space:nowrap}.lane-waf span{color:var(--muted);font-size:var(--s)}.lane-waf b{font-size:var(--xxl);letter-spacing:-.01em;font-weight:650;line-height:1.1}.lane-sub,.lane-phase{color:var(--muted);font-size:var(--s);text-overflow:ellipsis;white-space:nowrap;overflow:hidden}.lane-phase{text-align:right}.lane-phase[data-phase=failed]{color:var(--alarm)}@container (width<=340px){.lane-head{grid-template-columns:minmax(0,1fr)}.lane-head .lane-phase{text-align:left}.lane-name h2{font-size:var(--l)}.lane-side .numbers :is(th,td):is(:nth-child(2),:nth-child(3)),.lane-side .facts div:last-child{display:none}}.unit-map-scroll,.lane-side .scroll{max-height:900px;overflow:auto}.unit-map-frame{touch-action:pan-y;position:relative;overflow:hidden}.unit-map-frame:focus-visible{outline-offset:-2px}.unit-map-frame canvas{width:100%;height:100%;image-rendering:pixelated;position:absolute;inset:0 auto auto 0}.unit-map-frame .above{pointer-events:none}.region{height:24px;font-size:var(--s);color:var(--muted);pointer-events:none;white-space:nowrap;align-items:center;gap:6px;display:flex;position:absolute;top:0;left:0;right:0;overflow:hidden}.region b{color:var(--ink);font-weight:550}.region em{text-overflow:ellipsis;min-width:0;font-style:normal;overflow:hidden}.region b,.region span{flex:none}.region span{margin-left:auto}.swatch{border-radius:2px;flex:none;width:10px;height:10px;display:inline-block}.swatch.free{background:var(--free);box-shadow:inset 0 0 0 1px var(--edge)}.swatch.key{background:var(--edge)}.swatch.key.dead{opacity:.35}.swatch.key.open,.swatch.key.collecting{background:var(--free);box-shadow:inset 0 0 0 2px var(--ink)}.swatch.key.collecting{box-shadow:none;border:2px dotted var(--ink)}.unit-line{min-height:3em;font-size:var(--s);color:var(--muted);margin-top:6px}.unit-line b{color:var(--ink)}.legend{font-size:var(--s);color:var(--muted);flex-wrap:wrap;gap:2px 16px;margin-left:auto;display:flex}.legend span{white-space:nowrap}.legend .key{margin-right:3px}.free-units{gap:4px;display:grid}.free-units p{font-size:var(--s);color:var(--muted)}.free-units p b{color:var(--ink);font-size:var(--m)}.free-units .gauge{background:var(--free);border-radius:2px;height:10px;position:relative}.gauge .level{background:var(--muted);border-radius:2px;position:absolute;inset:0 auto 0 0}.free-units[data-level=foreground] .level{background:var(--alarm)}.gauge .mark{background:var(--ink);width:2px;margin-left:-1px;position:absolute;top:-3px;bottom:-3px}.lane-side [data-tour=handles]{min-height:150px}.scroll{min-width:0;overflow-x:auto}.scroll.tall{max-height:70vh;overflow:auto}table.numbers{border-collapse:collapse;width:100%;font-size:var(--m)}.numbers th,.numbers td{text-align:right;white-space:nowrap;padding:4px 0 4px 12px;font-weight:400}.numbers th:first-child,.numbers td:first-child,.numbers th.text,.numbers td.text{text-align:left}.numbers th:first-child,.numbers td:first-child{padding-left:0}.lane .numbers{font-size:.8125rem}.lane .numbers th,.lane .numbers td{padding-left:6px}.lane .numbers th:first-child{padding-left:0}.numbers thead th{color:var(--muted);font-size:var(--s);border-bottom:1px solid var(--line)}.numbers .cut{text-overflow:ellipsis;vertical-align:bottom;max-width:30em;display:inline-block;overflow:hidden}.beside .note{max-width:90ch;padding-top:6px}.beside .scroll{max-height:50vh;margin:10px 0}.numbers .long>span{text-overflow:ellipsis;vertical-align:bottom;max-width:34em;display:inline-block;overflow:hidden}.numbers tbody tr+tr>*{border-top:1px solid var(--line)}.numbers .quiet-row>*{color:var(--muted)}.facts{flex-wrap:wrap;justify-content:space-between;gap:8px 16px;display:flex}.facts dt{font-size:var(--s);color:var(--muted)}.facts dd{min-width:3.6em}.warnings{min-height:44px}.warnings li{border-left:3px solid var(--edge);font-size:var(--s);margin-top:4px;padding:2px 0 2px 10px}.below{border-top:1px solid var(--line);grid-template-columns:minmax(0,3fr) minmax(0,2fr);gap:32px 48px;margin-top:36px;padding-top:24px;display:grid}.curves,.events,.hosts{min-width:0}.events select{max-width:13em}.hosts{margin-bottom:28px}.plot{width:100%}.plot .uplot,.plot .u-wrap{font-family:var(--sans)}.plot .u-legend{text-align:left;font-size:var(--s);color:var(--ink);line-height:1.6}.plot .u-legend th{font-weight:400}.plot .u-legend .u-marker{vertical-align:middle;width:18px;border-width:2px 0 0!important;height:0!important}.plot .u-legend .u-value{min-width:3.6em;display:inline-block}.plot .u-hz .u-cursor-x{border-right:1px dashed var(--muted)}.plot .u-hz .u-cursor-y{border-bottom:1px dashed var(--muted)}.log{border-top:1px solid var(--line);height:292px;font-size:var(--s);overflow-y:auto}.log li{border-bottom:1px solid var(--line);grid-template-columns:3.2em 10px minmax(0,1fr);align-items:baseline;gap:10px;padding:5px 0;display:grid}.log li.empty{display:block}.log .when{color:var(--muted);text-align:right}.log .what{overflow-wrap:anywhere;color:var(--muted)}.log .what b{color:var(--ink);font-weight:550;display:block}.events .note{font-size:var(--s);margin-top:6px}.transport{z-index:4;background:var(--paper);border-top:1px solid var(--line);grid-template-columns:auto auto auto minmax(0,1fr) auto auto;align-items:center;gap:16px;margin-top:32px;padding:10px 0;display:grid;position:sticky;bottom:0}.transport .play{background:var(--ink);width:44px;height:44px;color:var(--paper);border-color:var(--ink);border-radius:50%;place-items:center;padding:0;display:grid}.transport .play:disabled{background:var(--raised);color:var(--muted);border-color:var(--line)}.play path,.to-collection path{fill:currentColor}.to-collection{align-items:center;gap:8px;font-weight:400;display:inline-flex}.steps{display:flex}.steps button{border-radius:0;margin-left:-1px;padding:0 9px;font-weight:400}.steps button:first-child{border-radius:var(--radius) 0 0 var(--radius)}.steps button:last-child{border-radius:0 var(--radius) var(--radius) 0}.slider{align-items:center;height:32px;display:flex;position:relative}.slider input{appearance:none;cursor:pointer;background:0 0;width:100%;height:32px;margin:0}.slider input::-webkit-slider-runnable-track{background:linear-gradient(to right, var(--ink) var(--at,0%), var(--line) var(--at,0%));border-radius:3px;height:6px}.slider input::-moz-range-track{background:linear-gradient(to right, var(--ink) var(--at,0%), var(--line) var(--at,0%));border-radius:3px;height:6px}.slider input::-webkit-slider-thumb{appearance:none;background:var(--paper);border:2px solid var(--ink);border-radius:50%;width:18px;height:18px;margin-top:-6px}.slider input::-moz-range-thumb{background:var(--paper);border:2px solid var(--ink);border-radius:50%;width:14px;height:14px}.fork-mark{background:var(--ink);pointer-events:none;width:2px;height:8px;position:absolute;top:2px}.position{white-space:nowrap;color:var(--muted);min-width:12.5em}.position b{color:var(--ink);text-align:right;min-width:2.4em;display:inline-block}.speed select{width:7.6em}dialog{border:1px solid var(--edge);background:var(--paper);width:min(440px,100vw - 32px);color:var(--ink);border-radius:10px;padding:24px}dialog::backdrop{background:#00000073}dialog form{gap:14px;display:grid}dialog select,dialog input[type]{width:100%;height:36px}dialog .value-now{font-size:var(--s);min-height:1.5em;margin-top:-10px}.buttons{flex-wrap:wrap;gap:8px;display:flex}.drive .since{margin-bottom:20px}dialog.wide{width:min(720px,100vw - 32px)}.faults{gap:14px;min-width:0;display:grid}.faults .editor{height:min(240px,40vh)}.faults .notice{margin:0}.two-press{place-content:center;justify-items:center;display:inline-grid}.two-press>span{grid-area:1/1}.two-press>span[aria-hidden=true]{visibility:hidden}.two-press[data-asked=true]{border-color:var(--alarm);box-shadow:inset 0 0 0 1px var(--alarm)}.two-press[aria-disabled=true]{cursor:progress}.tour{max-width:820px}.tour h1{font-size:var(--huge);letter-spacing:-.02em;line-height:1.1}.stories{border-top:1px solid var(--line);margin-top:28px}.motif rect.none{fill:var(--free)}.stories a{border-bottom:1px solid var(--line);color:var(--ink);grid-template-columns:44px 100px minmax(0,1fr);align-items:center;padding:18px 8px 18px 0;text-decoration:none;display:grid}.stories a:hover{background:var(--raised)}.stories .ordinal{font-size:var(--xxl);color:var(--muted);padding-left:8px;line-height:1}.stories b{font-size:var(--xl);font-weight:650;line-height:1.3;display:block}.stories em{color:var(--muted);font-style:normal}.caption{z-index:4;background:var(--ink);width:min(560px,100%);color:var(--paper);border-radius:10px;margin:24px auto 0;padding:16px 20px;position:sticky;bottom:76px}.caption-title{font-size:var(--s);justify-content:space-between;gap:16px;display:flex}.caption-title b{font-weight:550}.caption-text{font-size:var(--l);min-height:4.35em;margin:6px 0 12px;line-height:1.45}.caption-bar{align-items:center;gap:8px;display:flex}.caption button{color:var(--paper);border-color:color-mix(in srgb, var(--paper) 55%, var(--ink));background:0 0}.caption button:disabled{color:color-mix(in srgb, var(--paper) 60%, var(--ink))}.caption button.primary{background:var(--paper);color:var(--ink)}.caption a{color:var(--paper);margin-left:auto}.pointed-at{outline:2px solid var(--focus);outline-offset:8px;border-radius:2px}html:has(.in-tour){scroll-padding-bottom:290px}.compare>input[type=search]{max-width:480px;margin-top:20px}.beside-hint{color:var(--muted);padding:4px 0 12px}.beside{background:var(--raised);border-radius:var(--radius);margin:4px 0 20px;padding:8px 16px}@media (max-width:1100px){.lanes{--columns:2!important}.lanes[data-lanes=\"1\"],.lanes[data-lanes=large]{--columns:1!important}.below{grid-template-columns:minmax(0,1fr)}}@media (max-width:820px){main{padding:20px 16px 48px}.top{gap:16px;padding:0 16px}.columns,.columns.own{grid-template-columns:minmax(0,1fr)}.choices{max-height:300px}.lanes{gap:40px;--columns:1!important}.intro h1,.tour h1{font-size:2rem}.transport{grid-template-columns:auto auto minmax(0,1fr) auto;gap:4px 8px;margin-inline:-16px;padding:8px 16px}.transport .slider{grid-row:1}.to-collection{justify-content:center;justify-self:start;width:44px}.to-collection span{clip-path:inset(50%);width:1px;position:absolute;overflow:hidden}.transport .position{text-align:right;grid-area:1/4;min-width:7em}.transport .position span{display:none}.transport .slider{grid-column:1/4}.transport .speed{grid-area:2/4}.transport .speed select{width:7em}.caption{padding:12px 14px;bottom:116px}.caption-text{min-height:5.8em;font-size:var(--m)}}@media (pointer:coarse),(max-width:480px){button,select,input[type=text],input[type=search],input[type=number],.choice span,.slider,.slider input,dialog select,dialog input[type],.notice button{height:44px}button.link{height:44px;padding:0 4px}.notice button,.lane-list button.quiet{min-width:44px}.notice{align-items:center}.chip span{padding:11px 16px}.pick input[type=search],.compare>input[type=search]{height:44px}.chips legend{align-items:center;min-height:44px}.lane-list li{grid-template-columns:10em minmax(0,1fr) 44px}.lane-name{height:44px}.top nav a{justify-content:center;min-width:44px}.top .mark,.running a,.caption a,.intro a{align-items:center;min-width:44px;min-height:44px;display:inline-flex}.numbers td input[type=checkbox]{width:24px;height:24px;margin:10px}.slider input::-webkit-slider-thumb{width:26px;height:26px;margin-top:-10px}.slider input::-moz-range-thumb{width:22px;height:22px}.steps button{min-width:44px}}@media (max-width:480px){.running li{grid-template-columns:minmax(0,1fr) auto}.running li>a{grid-column:1/-1}.top .mark span{display:none}.run-head h1{min-height:2.6em}.run-head .actions{grid-template-columns:1fr 1fr;width:100%;display:grid}.run-head .actions[hidden]{display:none}.export select{width:100%}.lane-sub{white-space:normal}.fields label{width:calc(50% - 8px)}.fields select,.fields input[type],.fields .wide select,.begin .primary{width:100%}.numbers .long>span{max-width:8em}.top{gap:8px}.top nav{gap:6px}.headline{grid-template-columns:minmax(0,1fr)}.headline .sentence{font-size:var(--l);min-height:4.05em}.theme select{width:6.5em}.numbers th,.numbers td{padding-left:8px}.facts{gap:8px 16px}.lane-list li{grid-template-columns:minmax(0,1fr) 44px}.lane-list li span{grid-area:2/1/auto/-1}}@media (prefers-reduced-motion:reduce){*{scroll-behavior:auto!important;transition:none!important}}.widget{padding:4px 2px}.widget .curves{margin-top:32px}.widget .transport{border-top:0;margin:8px 0 24px;padding:10px 0;position:static}";
// src/widget.tsx
function pl({ session: e }) {
	let t = U(!1), n = e.connection.value;
	return /* @__PURE__ */ q("div", {
		class: "run widget",
		tabIndex: -1,
		children: [
			/* @__PURE__ */ q("div", {
				class: "run-head",
				children: [/* @__PURE__ */ q("h1", { children: e.title.value }), /* @__PURE__ */ q("div", {
					class: "actions",
					children: /* @__PURE__ */ q("button", {
						type: "button",
						onClick: () => t.value = !0,
						children: "Fork from here"
					})
				})]
			}),
			n === "lost" && /* @__PURE__ */ q(yc, {
				kind: "waiting",
				children: "The engine does not answer. The widget shows the last state."
			}),
			n === "gone" && /* @__PURE__ */ q(yc, {
				kind: "waiting",
				children: "This run has ended. Run the cell again to restart it."
			}),
			e.problem.value !== null && /* @__PURE__ */ q(yc, {
				kind: "error",
				children: e.problem.value
			}),
			/* @__PURE__ */ q(Rc, { session: e }),
			/* @__PURE__ */ q(qc, { session: e }),
			/* @__PURE__ */ q(Bc, { session: e }),
			/* @__PURE__ */ q(Xs, { session: e }),
			/* @__PURE__ */ q(gc, {
				session: e,
				open: t
			})
		]
	});
}
function ml(e, t) {
	return e instanceof Zc && e.status === 0 ? `The browser cannot reach the notebook's kernel at ${t}. If the kernel was restarted, run the cell again. If it is on another machine, forward its port to this machine with ssh -L ${new URL(t).port}:${new URL(t).host} MACHINE.` : e instanceof Error ? e.message : String(e);
}
async function hl(e, t) {
	let n = new Qc(String(e.get("url") ?? ""), e.get("token") || null), r = e.get("order"), i = e.get("session"), a = i || (r ? await n.begin(r) : null);
	if (a === null) throw Error("The widget has neither an order nor a session. Give it one of them.");
	let o = ul.of(n, a);
	return I(/* @__PURE__ */ q(pl, { session: o }), t), () => {
		I(null, t), o.close(), i || n.end(a).catch(() => {});
	};
}
var gl = { render({ model: e, el: t }) {
	t.dataset.lmSuppressShortcuts = "true";
	let n = t.attachShadow({ mode: "open" }), r = document.createElement("style");
	r.textContent = dl + fl;
	let i = document.createElement("div");
	i.className = "warp-studio", n.append(r, i);
	let a = Yc(i), o = null, s = !1;
	return hl(e, i).then((e) => {
		s ? e() : o = e;
	}, (t) => {
		I(/* @__PURE__ */ q(yc, {
			kind: "error",
			children: ml(t, String(e.get("url") ?? ""))
		}), i);
	}), () => {
		s = !0, a(), o?.();
	};
} };
export { gl as default };

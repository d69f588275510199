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
	s && ((n = _({ constructor: d }, r)).__v = r.__v + 1, e.vnode && e.vnode(n), ie(s, n, r, t.__n, s.namespaceURI, 32 & r.__u ? [i] : null, a, i || C(r), 32 & r.__u, o), n.__v = r.__v, n.__.__k[n.__i] = n, j(a, n, o), r.__ = r.__e = null, n.__e != i && T(n));
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
	for (c = k(n, t, y, c, b), d = 0; d < b; d++) (h = n.__k[d]) != null && (m = ~h.__i && y[h.__i] || f, h.__i = d, v = ie(e, h, m, i, a, o, s, c, l, u), g = h.__e, (m.ref != h.ref || 8 & m.__u) && (m.ref && N(m.ref, null, h, m), h.ref && u.push(h.ref, h.__c || g, h)), _ ||= g, 4 & h.__u ? (c = ee(h, c, e, !m.__v), m.__e && (m.__e = null)) : typeof h.type == "function" && v !== void 0 ? c = v : g && (c = g.nextSibling), h.__u &= -21);
	return n.__e = _, c;
}
function k(e, t, n, r, i) {
	var a, o, s, c, l, u, f, p, m, g = n.length, _ = g, v = 0, y = 0, S = e.__k = Array(i);
	for (a = 0; a < i; a++) (o = t[a]) != null && typeof o != "boolean" && typeof o != "function" ? (typeof o != "object" || o.constructor === String ? o = S[a] = b(null, o) : h(o) ? o = S[a] = b(x, { children: o }) : o.constructor === d && o.__b ? o = S[a] = b(o.type, o.props, o.key, o.ref, o.__v) : S[a] = o, c = a + v, o.__ = e, o.__b = e.__b + 1, s = null, ~(l = o.__i = A(o, n, c, _)) && (_--, (s = n[l]) && (s.__u |= 2)), s && s.__v ? (o.__u |= 16, l == c - 1 ? v-- : l == c + 1 ? v++ : l != c && (l > c ? v-- : v++, y = 1)) : (~l || (i > g ? v-- : i < g && v++), typeof o.type != "function" && (o.__u |= 4))) : S[a] = null;
	if (y) {
		for (u = [], f = [], a = 0; a < i; a++) if ((o = S[a]) && 16 & o.__u) {
			for (v = 0, p = u.length; v < p;) u[m = v + p >> 1] < o.__i ? v = m + 1 : p = m;
			u[v] = o.__i, f[a] = v + 1;
		}
		for (v = u.length; a--;) f[a] && (f[a] == v ? v-- : S[a].__u |= 4);
	}
	if (_) for (a = 0; a < g; a++) !(s = n[a]) || 2 & s.__u || (s.__e == r && (r = C(s)), se(s, s));
	return r;
}
function ee(e, t, n, r) {
	var i, a, o, s;
	if (typeof e.type == "function") {
		if (e.props.__P) return t;
		if (i = e.__k) for (a = 0; a < i.length; a++) i[a] && (i[a].__ = e, t = ee(i[a], t, n, !1));
		return t;
	}
	for (t && !t.parentNode && (t = C(e)) && !t.parentNode && (t = null), o = e.__e, s = t; s && s.nodeType == 8;) s = s.nextSibling;
	for (o != s && (!r && n.moveBefore && o.parentNode ? n.moveBefore(o, t) : n.insertBefore(o, t || null)), t = o; (t &&= t.nextSibling) && t.nodeType == 8 && !t.data.startsWith("$s"););
	return t;
}
function A(e, t, n, r) {
	var i, a = e.key, o = e.type, s = t[n], c = s && !(2 & s.__u);
	if (s === null && a == null || c && a == s.key && o == s.type) return n;
	if (r > +!!c) {
		for (i = n - 1; i >= 0; i--) if ((s = t[i]) && !(2 & s.__u) && a == s.key && o == s.type) return i;
		for (i = n + 1; i < t.length; i++) if ((s = t[i]) && !(2 & s.__u) && a == s.key && o == s.type) return i;
	}
	return -1;
}
function te(e, t, n) {
	n ??= "", t[0] == "-" ? e.setProperty(t, n) : e[t] = n;
}
function ne(e, t, n, r, i) {
	var a, o;
	if (t == "style") {
		if (typeof n == "string") e.style.cssText = n;
		else {
			if (typeof r == "string" && (e.style.cssText = r = ""), r) for (t in r) n && t in n || te(e.style, t);
			if (n) for (t in n) r && n[t] == r[t] || te(e.style, t, n[t]);
		}
	} else if (t[0] == "o" && t[1] == "n") typeof n != "function" && (n = null), typeof r != "function" && (r = null), (e.__e ||= {})[t] = n, n && r || (o = u[t] || (u[t] = re(t)), (e.__a ||= {})[t] = l, a = t != (t = t.replace(c, "$1")), (t = t.slice(2))[0] < "a" && (t = t.toLowerCase()), n ? e.addEventListener(t, o, a) : e.removeEventListener(t, o, a));
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
function re(t) {
	return function(n) {
		var r = this.__e;
		if (r) {
			if (r = r[t], n[s] == null) n[s] = l++;
			else if (n[s] < this.__a[t]) return;
			return r(e.event ? e.event(n) : n);
		}
	};
}
function ie(t, n, r, i, a, o, s, c, l, u) {
	var f, m, g, y, b, w, T, E, D, k, ee, A, te, ne, re, ie, j, N, F = n.type;
	if (n.constructor !== d) return null;
	128 & r.__u && (l = 32 & r.__u, f = r.__c.__z) && (n.__u |= l, m = o = [], f.nodeType == 8 ? c = ae(f, o) : o.push(f), c = o[0] || c), (f = e.__b) && f(n);
	n: if (typeof F == "function") {
		g = s.length;
		try {
			if (E = n.props, D = (f = F.prototype) && f.render, k = (f = F.contextType) && i[f.__c], ee = f ? k ? k.props.value : f.__ : i, (y = r.__c) ? (n.__c = y, 2 & y.__g && (y.__g |= 1)) : (D ? n.__c = y = new F(E, ee) : (n.__c = y = new S(E, ee), y.constructor = F, y.render = P), k && k.sub(y), y.state || (y.state = {}), y.__n = i, y.__g |= 8, y.__h = [], y.__k = []), D && (y.__s || (y.__s = y.state), F.getDerivedStateFromProps && (y.__s == y.state && (y.__s = _({}, y.__s)), _(y.__s, F.getDerivedStateFromProps(E, y.__s)))), b = y.props, w = y.state, y.__v = n, r.__c) {
				if (E !== b && D && !F.getDerivedStateFromProps && y.componentWillReceiveProps && y.componentWillReceiveProps(E, ee), n.__v == r.__v && !(8 & y.__g) || !(4 & y.__g) && y.shouldComponentUpdate && !1 === y.shouldComponentUpdate(E, y.__s, ee)) {
					n.__v != r.__v && (y.props = E, y.state = y.__s, y.__g &= -9), n.__e = r.__e, n.__k = r.__k, n.__k.some(function(e) {
						e && (e.__ = n);
					}), p.push.apply(y.__h, y.__k), y.__k = [], y.__h.length && s.push(y), c = C(r);
					break n;
				}
				y.componentWillUpdate && y.componentWillUpdate(E, y.__s, ee), D && y.componentDidUpdate && y.__h.push(function() {
					y.componentDidUpdate(b, w, T);
				});
			} else D && !F.getDerivedStateFromProps && y.componentWillMount && y.componentWillMount(), D && y.componentDidMount && y.__h.push(y.componentDidMount);
			y.context = ee, y.props = E, y.__P = t, y.__g &= -5, A = e.__r, te = D ? 25 : 0;
			do
				y.__g &= -9, A && A(n), f = y.render(y.props, y.state = y.__s, y.context);
			while (8 & y.__g && ++te < 25);
			D && (p.push.apply(y.__h, y.__k), y.__k = []), y.state = y.__s, y.getChildContext && (i = _({}, i, y.getChildContext())), D && r.__c && y.getSnapshotBeforeUpdate && (T = y.getSnapshotBeforeUpdate(b, w)), ne = f && f.type === x && f.key == null ? f.props.children : f, E.__P && (f = c, a = (t = E.__P).namespaceURI, l = o = null, r.props && r.props.__P != t && (r.__k.some(function(e) {
				e && se(e, e);
			}), r.__k = null), c = r.__k ? C(r, 0) : null), c = O(t, h(ne) ? ne : [ne], n, r, i, a, o, s, c, l, u), E.__P && (n.__e = null, c = f), n.__u &= -161, m && m.some(v), y.__h.length && s.push(y), 1 & y.__g && (y.__g &= -4);
		} catch (t) {
			if (s.length = g, n.__v = null, l || o) {
				if (t && t.then) {
					if (n.__u |= 128 | l, o) {
						for (~(j = o.indexOf(c || void 0)) || (j = o.length); (N = o[j - 1]) && N.nodeType == 8;) j--;
						for (; j < o.length; j++) if (N = o[j]) {
							if (o[j] = null, re) {
								if (N == ie) break;
							} else {
								if (N.nodeType != 8) break;
								N.data.startsWith("$s") && (ie = ae(re = N));
							}
						}
					}
					if (!re) {
						for (; c && c.nodeType == 8 && c.nextSibling;) c = c.nextSibling;
						re = c;
					}
					(f = ae(re = n.__c.__z || (n.__c.__z = re))) ? (n.__e = re, c = f) : n.__e = c, c &&= c.nextSibling;
				} else o && o.some(v);
			} else n.__e = r.__e;
			n.__k ||= r.__k || [], t && t.then || oe(n), e.__e(t, n, r);
		}
	} else c = n.__e = M(r.__e, n, r, i, a, o, s, l, u, t);
	return (f = e.diffed) && f(n), c;
}
function ae(e, t) {
	if (e && e.nodeType == 8 && e.data.startsWith("$s")) for (var n = 1; e = e.nextSibling;) {
		if (e.nodeType == 8) {
			if (e.data.startsWith("$s")) n++;
			else if (e.data.startsWith("/$s") && !--n) return e;
		}
		t && t.push(e);
	}
}
function oe(e) {
	e && (e.__c && (e.__c.__g |= 4), e.__k && e.__k.some(oe));
}
function j(t, n, r) {
	for (var i = 0; i < r.length;) N(r[i++], r[i++], r[i++]);
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
function M(t, n, r, i, a, o, s, c, l, u) {
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
		for (d in T) b = T[d], d == "dangerouslySetInnerHTML" ? _ = b : d == "children" || d in E || d == "value" && "defaultValue" in E || d == "checked" && "defaultChecked" in E || ne(t, d, null, b, a);
		for (d in E) b = E[d], d == "children" ? y = b : d == "dangerouslySetInnerHTML" ? p = b : d == "value" ? x = b : d == "checked" ? S = b : c && typeof b != "function" || T[d] === b || ne(t, d, b, T[d], a);
		p ? (c || _ && (p.__html == _.__html || p.__html == t.innerHTML) || (t.innerHTML = p.__html), n.__k = []) : (_ && (t.textContent = ""), (D == "foreignObject" || a == "http://www.w3.org/1998/Math/MathML" && m.test(D)) && (a = "http://www.w3.org/1999/xhtml"), O(u, h(y) ? y : [y], n, r, i, a, o, s, o ? o[0] : r.__k && C(r, 0), c, l), o && o.some(v)), c && D != "textarea" || (d = "value", D == "progress" && x == null ? t.removeAttribute(d) : x == null || x === t[d] && (D != "progress" || x) || ne(t, d, x, T[d], a), d = "checked", S != null && S != t[d] && ne(t, d, S, T[d], a));
	} else T === E || c && t.data == E || (t.data = E);
	return t;
}
function N(t, n, r, i) {
	try {
		typeof t == "function" ? n ? n.__x = t(n) || 1 : (i &&= i.__c || i.__e) && (n = i.__x) && (i.__x = null, typeof n == "function" ? n() : t(null)) : t.current = n;
	} catch (t) {
		e.__e(t, r);
	}
}
function se(t, n, r) {
	var i, a, o, s;
	if (e.unmount && e.unmount(t), !(i = t.ref) || i.current && i.current != t.__e || N(i, null, n, t), i = t.__c) {
		if (i.componentWillUnmount) try {
			i.componentWillUnmount();
		} catch (t) {
			e.__e(t, n);
		}
		i.__P = i.__n = null;
	}
	if (i = t.__k) for (s = 0; s < i.length; s++) i[s] && se(i[s], n, typeof t.type != "function" || r && !t.props.__P);
	!r && (i = t.__c) && (i = i.__z) && (a = ae(i, o = [])) && (i == t.__e && o.some(v), v(a), v(i)), r || v(t.__e), t.__e = t.__c = t.__ = null;
}
function P(e, t, n) {
	return this.constructor(e, n);
}
function F(t, n) {
	var r, i, a, o;
	e.__ && e.__(t, n), n.nodeType == 9 && (n = n.documentElement), i = (r = t && 32 & t.__u) ? null : n.__k, n.__k = b(x, { children: [t] }), a = [], o = [], ie(n, n.__k, i || f, f, n.namespaceURI, i ? null : n.firstChild ? g.call(n.childNodes) : null, a, i ? i.__e : n.firstChild, r, o), j(a, n.__k, o), n.__k.props.children = null;
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
var ce, I, le, ue, de = Object.is, fe = 0, pe = [], me = [], L = e, he = L.__b, ge = L.__r, _e = L.diffed, ve = L.__c, ye = L.unmount, be = L.__;
function xe(e, t) {
	L.__h && L.__h(I, e, fe || t), fe = 0;
	var n = I.__H || (I.__H = {
		__: [],
		__h: []
	});
	return e >= n.__.length && n.__.push({}), n.__[e];
}
function R(e) {
	return fe = 1, z(Pe, e);
}
function z(e, t, n) {
	var r = xe(ce++, 2);
	if (r.t = e, !r.__c && (r.__ = [n ? n(t) : Pe(void 0, t), function(e) {
		var t = (r.__N || r.__)[0], n = r.t(t, e);
		de(t, n) || (r.__N = [n, r.__[1]], r.__c.setState({}));
	}], r.__c = I, !I.__f)) {
		I.__f = !0;
		var i = I.shouldComponentUpdate;
		I.shouldComponentUpdate = function(e, t, n) {
			var r = this.__H;
			if (!r) return !0;
			var a = !1, o = this.props != e;
			if (r.__.some(function(e) {
				e.__N && (a = !0, de(e.__[0], e.__N[0]) || (o = !0));
			}), i) {
				var s = i.call(this, e, t, n);
				return a ? s || o : s;
			}
			return !a || o;
		};
	}
	return r.__;
}
function Se(e, t) {
	var n = xe(ce++, 3);
	!L.__s && Ne(n.__H, t) && (n.__P = !0, n.__ = e, n.u = t, I.__H.__h.push(n));
}
function Ce(e, t) {
	var n = xe(ce++, 4);
	!L.__s && Ne(n.__H, t) && (n.__P = !1, n.__ = e, n.u = t, I.__h.push(n));
}
function we(e) {
	return fe = 5, Te(function() {
		return { current: e };
	}, []);
}
function Te(e, t) {
	var n = xe(ce++, 7);
	return Ne(n.__H, t) && (n.__ = e(), n.__H = t), n.__;
}
function Ee() {
	var e = xe(ce++, 11);
	if (!e.__) {
		for (var t = I.__v; !t.__m && t.__;) t = t.__;
		var n = t.__m || (t.__m = [0, 0]);
		e.__ = "P" + n[0] + "-" + n[1]++;
	}
	return e.__;
}
function De() {
	var e;
	do {
		for (; e = me.shift();) try {
			je(e);
		} catch (t) {
			L.__e(t, { __: (e = e.__P) && e.__v });
		}
		for (; e = pe.shift();) {
			var t = e.__H;
			if (e.__P && t) try {
				t.__h.some(je), t.__h.some(Me), t.__h = [];
			} catch (n) {
				t.__h = [], L.__e(n, e.__v);
			}
		}
	} while (me.length);
}
L.__b = function(e) {
	I = null, he && he(e);
}, L.__ = function(e, t) {
	e && t.__k && t.__k.__m && (e.__m = t.__k.__m), be && be(e, t);
}, L.__r = function(e) {
	ge && ge(e), ce = 0;
	var t = (I = e.__c).__H;
	t && (le == I ? I.__h = [] : (t.__h.some(je), t.__h.some(Me), ce = 0), t.__h = [], t.__.some(function(e) {
		e.__N && (e.__ = e.__N), e.u = e.__N = void 0;
	})), le = I;
}, L.diffed = function(e) {
	_e && _e(e);
	var t = e.__c;
	t && t.__H && (t.__H.__h.length && Ae(pe.push(t)), t.__H.__.some(function(e) {
		e.u && (e.__H = e.u);
	})), le = I = null;
}, L.__c = function(e, t) {
	t.some(function(e) {
		try {
			e.__h.some(je), e.__h = e.__h.filter(function(e) {
				return !e.__ || Me(e);
			});
		} catch (t) {
			e.__h = [function() {
				throw t;
			}];
		}
	}), ve && ve(e, t);
}, L.unmount = function(e) {
	ye && ye(e);
	var t, n, r = e.__c;
	r && r.__H && (r.__H.__.some(function(r) {
		try {
			if (r.__P && r.__c) {
				if (n === void 0) {
					for (n = e.__; n && (!n.__c || !n.__c.__P);) n = n.__;
					n &&= n.__c;
				}
				r.__P = n, Ae(me.push(r));
			} else je(r);
		} catch (e) {
			t = e;
		}
	}), r.__H = void 0, t && L.__e(t, r.__v));
};
var Oe = typeof requestAnimationFrame == "function";
function ke(e) {
	var t, n = function() {
		clearTimeout(r), Oe && cancelAnimationFrame(t), setTimeout(e);
	}, r = setTimeout(n, 35);
	Oe && (t = requestAnimationFrame(n));
}
function Ae(e) {
	e != 1 && ue == L.requestAnimationFrame || ((ue = L.requestAnimationFrame) || ke)(De);
}
function je(e) {
	var t = I, n = e.__c;
	typeof n == "function" && (e.__c = void 0, n()), I = t;
}
function Me(e) {
	var t = I;
	e.__c = e.__(), I = t;
}
function Ne(e, t) {
	return !e || e.length != t.length || t.some(function(t, n) {
		return !de(t, e[n]);
	});
}
function Pe(e, t) {
	return typeof t == "function" ? t(e) : t;
}
// node_modules/@preact/signals-core/dist/signals-core.module.js
var Fe = Symbol.for("preact-signals");
function Ie() {
	if (Ve > 1) Ve--;
	else {
		var e, t = !1;
		for ((function() {
			var e = Ge;
			for (Ge = void 0; e !== void 0;) {
				var t = e.S;
				if (t.v === e.v) for (var n = t.t; n !== void 0; n = n.x) n.i === e.i && (n.i = t.i);
				e = e.o;
			}
		})(); Be !== void 0;) {
			var n = Be;
			for (Be = void 0, He++; n !== void 0;) {
				var r = n.u;
				if (n.u = void 0, n.f &= -3, !(8 & n.f) && Je(n)) try {
					n.c();
				} catch (n) {
					t ||= (e = n, !0);
				}
				n = r;
			}
		}
		if (He = 0, Ve--, t) throw e;
	}
}
function Le(e) {
	if (Ve > 0) return e();
	We = ++Ue, Ve++;
	try {
		return e();
	} finally {
		Ie();
	}
}
var Re, B = void 0;
function ze(e) {
	var t = B, n = Re;
	B = void 0, Re = void 0;
	try {
		return e();
	} finally {
		B = t, Re = n;
	}
}
var Be = void 0, Ve = 0, He = 0, Ue = 0, We = 0, Ge = void 0, Ke = 0;
function qe(e) {
	if (B !== void 0) {
		var t = e.n;
		if (t === void 0 || t.t !== B) return t = {
			i: 0,
			S: e,
			p: B.s,
			n: void 0,
			t: B,
			e: void 0,
			x: void 0,
			r: t
		}, B.s !== void 0 && (B.s.n = t), B.s = t, e.n = t, 32 & B.f && e.S(t), t;
		if (t.i === -1) return t.i = 0, t.n !== void 0 && (t.n.p = t.p, t.p !== void 0 && (t.p.n = t.n), t.p = B.s, t.n = void 0, B.s.n = t, B.s = t), t;
	}
}
function V(e, t) {
	this.v = e, this.i = 0, this.n = void 0, this.t = void 0, this.l = 0, this.W = t?.watched, this.Z = t?.unwatched, this.name = t?.name;
}
V.prototype.brand = Fe, V.prototype.h = function() {
	return !0;
}, V.prototype.S = function(e) {
	var t = this, n = this.t;
	n !== e && e.e === void 0 && (e.x = n, this.t = e, n === void 0 ? ze(function() {
		var e;
		(e = t.W) == null || e.call(t);
	}) : n.e = e);
}, V.prototype.U = function(e) {
	var t = this;
	if (this.t !== void 0) {
		var n = e.e, r = e.x;
		n !== void 0 && (n.x = r, e.e = void 0), r !== void 0 && (r.e = n, e.x = void 0), e === this.t && (this.t = r, r === void 0 && ze(function() {
			var e;
			(e = t.Z) == null || e.call(t);
		}));
	}
}, V.prototype.subscribe = function(e) {
	var t = this;
	return rt(function() {
		var n = t.value;
		ze(function() {
			return e(n);
		});
	}, { name: "sub" });
}, V.prototype.valueOf = function() {
	return this.value;
}, V.prototype.toString = function() {
	return this.value + "";
}, V.prototype.toJSON = function() {
	return this.value;
}, V.prototype.peek = function() {
	var e = this;
	return ze(function() {
		return e.value;
	});
}, Object.defineProperty(V.prototype, "value", {
	get: function() {
		var e = qe(this);
		return e !== void 0 && (e.i = this.i), this.v;
	},
	set: function(e) {
		if (e !== this.v) {
			if (He > 100) throw Error("Cycle detected");
			(function(e) {
				Ve !== 0 && He === 0 && e.l !== We && (e.l = We, Ge = {
					S: e,
					v: e.v,
					i: e.i,
					o: Ge
				});
			})(this), this.v = e, this.i++, Ke++, Ve++;
			try {
				for (var t = this.t; t !== void 0; t = t.x) t.t.N();
			} finally {
				Ie();
			}
		}
	}
});
function H(e, t) {
	return new V(e, t);
}
function Je(e) {
	for (var t = e.s; t !== void 0; t = t.n) if (t.S.i !== t.i || !t.S.h() || t.S.i !== t.i) return !0;
	return !1;
}
function Ye(e) {
	for (var t = e.s; t !== void 0; t = t.n) {
		var n = t.S.n;
		if (n !== void 0 && (t.r = n), t.S.n = t, t.i = -1, t.n === void 0) {
			e.s = t;
			break;
		}
	}
}
function Xe(e) {
	for (var t = e.s, n = void 0; t !== void 0;) {
		var r = t.p;
		t.i === -1 ? (t.S.U(t), r !== void 0 && (r.n = t.n), t.n !== void 0 && (t.n.p = r)) : n = t, t.S.n = t.r, t.r !== void 0 && (t.r = void 0), t = r;
	}
	e.s = n;
}
function Ze(e, t) {
	V.call(this, void 0, t), this.x = e, this.s = void 0, this.g = Ke - 1, this.f = 4;
}
Ze.prototype = new V(), Ze.prototype.h = function() {
	if (this.f &= -3, 1 & this.f) return !1;
	if ((36 & this.f) == 32 || (this.f &= -5, this.g === Ke)) return !0;
	if (this.g = Ke, this.f |= 1, this.i > 0 && !Je(this)) return this.f &= -2, !0;
	var e = B;
	try {
		Ye(this), B = this;
		var t = this.x();
		(16 & this.f || this.v !== t || this.i === 0) && (this.v = t, this.f &= -17, this.i++);
	} catch (e) {
		this.v = e, this.f |= 16, this.i++;
	}
	return B = e, Xe(this), this.f &= -2, !0;
}, Ze.prototype.S = function(e) {
	if (this.t === void 0) {
		this.f |= 36;
		for (var t = this.s; t !== void 0; t = t.n) t.S.S(t);
	}
	V.prototype.S.call(this, e);
}, Ze.prototype.U = function(e) {
	if (this.t !== void 0 && (V.prototype.U.call(this, e), this.t === void 0)) {
		this.f &= -33;
		for (var t = this.s; t !== void 0; t = t.n) t.S.U(t);
	}
}, Ze.prototype.N = function() {
	if (!(2 & this.f)) {
		this.f |= 6;
		for (var e = this.t; e !== void 0; e = e.x) e.t.N();
	}
}, Object.defineProperty(Ze.prototype, "value", { get: function() {
	if (1 & this.f) throw Error("Cycle detected");
	var e = qe(this);
	if (this.h(), e !== void 0 && (e.i = this.i), 16 & this.f) throw this.v;
	return this.v;
} });
function Qe(e, t) {
	return new Ze(e, t);
}
function $e(e) {
	var t = e.j;
	if (e.j = void 0, typeof t == "function") {
		Ve++;
		var n = B;
		B = void 0;
		try {
			t();
		} catch (t) {
			throw e.f &= -2, e.f |= 8, et(e), t;
		} finally {
			B = n, Ie();
		}
	}
}
function et(e) {
	for (var t = e.s; t !== void 0; t = t.n) t.S.U(t);
	e.x = void 0, e.s = void 0, $e(e);
}
function tt(e) {
	if (B !== this) throw Error("Out-of-order effect");
	Xe(this), B = e, this.f &= -2;
	try {
		8 & this.f && et(this);
	} finally {
		Ie();
	}
}
function nt(e, t) {
	this.x = e, this.j = void 0, this.s = void 0, this.u = void 0, this.f = 32, this.name = t?.name, Re && Re.push(this);
}
nt.prototype.c = function() {
	var e = this.S();
	try {
		if (8 & this.f || this.x === void 0) return;
		var t = this.x();
		typeof t == "function" && (this.j = t);
	} finally {
		e();
	}
}, nt.prototype.S = function() {
	if (1 & this.f) throw Error("Cycle detected");
	this.f |= 1, this.f &= -9, $e(this), Ye(this), Ve++;
	var e = B;
	return B = this, tt.bind(this, e);
}, nt.prototype.N = function() {
	2 & this.f || (this.f |= 2, this.u = Be, Be = this);
}, nt.prototype.d = function() {
	this.f |= 8, 1 & this.f || et(this);
}, nt.prototype.dispose = function() {
	this.d();
};
function rt(e, t) {
	var n = new nt(e, t);
	try {
		n.c();
	} catch (e) {
		throw n.d(), e;
	}
	var r = n.d.bind(n);
	return r[Symbol.dispose] = r, r;
}
// node_modules/@preact/signals/dist/signals.module.js
var it, at, ot = typeof window < "u" && !!window.__PREACT_SIGNALS_DEVTOOLS__, st = [];
rt(function() {
	it = this.N;
})();
function ct(t, n) {
	e[t] = n.bind(null, e[t] || function() {});
}
function lt(e) {
	if (at) {
		var t = at;
		at = void 0, t();
	}
	at = e && e.S();
}
function ut(e) {
	var t = this, r = e.data, i = ft(r);
	i.name = "ReactiveDom", i.value = r;
	var a = Te(function() {
		for (var e = t, r = t.__v; r = r.__;) if (r.__c) {
			r.__c.__$f |= 4;
			break;
		}
		var a = Qe(function() {
			var e = i.value.value;
			return e === 0 ? 0 : !0 === e ? "" : e || "";
		}), o = Qe(function() {
			return !Array.isArray(a.value) && !n(a.value);
		}), s = rt(function() {
			if (this.N = ht, o.value) {
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
ut.displayName = "ReactiveTextNode", Object.defineProperties(V.prototype, {
	constructor: {
		configurable: !0,
		value: y(x, null).constructor
	},
	type: {
		configurable: !0,
		value: ut
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
}), ct("__b", function(e, t) {
	if (lt(), typeof t.type == "string") {
		var n, r = t.props;
		for (var i in r) if (i !== "children") {
			var a = r[i];
			a instanceof V && (n || (t.__np = n = {}), n[i] = a, r[i] = a.peek());
		}
	}
	e(t);
}), ct("__r", function(e, t) {
	if (e(t), t.type !== x) {
		lt();
		var n, r = t.__c;
		r && (r.__$f &= -2, (n = r.__$u) === void 0 && (r.__$u = n = function(e, t) {
			var n;
			return rt(function() {
				n = this;
			}, { name: t }), n.c = e, n;
		}(function(e) {
			return function() {
				var t;
				ot && ((t = this.y) == null || t.call(this)), e.__$f |= 1, e.setState({});
			};
		}(r), typeof t.type == "function" ? t.type.displayName || t.type.name : ""))), lt(n);
	}
}), ct("__e", function(e, t, n, r) {
	lt(), e(t, n, r);
}), ct("diffed", function(e, t) {
	lt();
	var n;
	if (typeof t.type == "string" && (n = t.__e)) {
		var r = t.__np, i = t.props, a = n.U;
		if (a) for (var o in a) {
			var s = a[o];
			s === void 0 || r && o in r || (s.d(), a[o] = void 0);
		}
		if (r) for (var c in a || (a = {}, n.U = a), r) {
			var l = a[c], u = r[c];
			l === void 0 ? (l = dt(n, c, u, i), a[c] = l) : l.o(u, i);
		}
	}
	e(t);
});
function dt(e, t, n, r) {
	var i = t in e && e.ownerSVGElement === void 0, a = H(n);
	return {
		o: function(e, t) {
			a.value = e, r = t;
		},
		d: rt(function() {
			this.N = ht;
			var n = a.value.value;
			r[t] !== n && (r[t] = n, i ? e[t] = n : n != null && (!1 !== n || t[4] === "-") ? e.setAttribute(t, n) : e.removeAttribute(t));
		})
	};
}
ct("unmount", function(e, t) {
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
}), ct("__h", function(e, t, n, r) {
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
function ft(e, t) {
	return Te(function() {
		return H(e, t);
	}, []);
}
var pt = function(e) {
	queueMicrotask(function() {
		queueMicrotask(e);
	});
};
function mt() {
	Le(function() {
		for (var e; e = st.shift();) it.call(e);
	});
}
function ht() {
	st.push(this) === 1 && (e.requestAnimationFrame || pt)(mt);
}
var gt = 40, _t = 16, vt = 40, yt = 1, bt = 4294967295, xt = [
	"waiting",
	"filling",
	"running",
	"paused",
	"ended",
	"failed"
], St = [
	"open",
	"close",
	"reclaim",
	"redirect"
], Ct = class extends Error {}, wt = class {
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
		if (e.byteLength < 88) throw new Ct(`a frame of ${e.byteLength} bytes is too short; reload the page`);
		let t = new DataView(e), n = t.getUint8(0);
		if (n !== yt) throw new Ct(`the server sends frames of version ${n}, this page reads ${yt}; reload the page`);
		let r = xt[t.getUint8(2)];
		if (r === void 0) throw new Ct(`a frame has the unknown phase ${t.getUint8(2)}; reload the page`);
		this.view = t, this.lane = t.getUint8(1), this.phase = r, this.whole = !!(t.getUint8(3) & 1), this.owners = t.getUint32(4, !0), this.units = t.getUint32(8, !0), this.events = t.getUint32(12, !0), this.samples = t.getUint32(16, !0), this.freeUnits = t.getUint32(20, !0), this.hostBytes = t.getFloat64(24, !0), this.mediaBytes = t.getFloat64(32, !0), this.filledBytes = t.getFloat64(40, !0), this.nowNs = t.getFloat64(48, !0), this.collections = t.getFloat64(56, !0), this.requests = t.getFloat64(64, !0), this.eventsLeftOut = t.getFloat64(72, !0), this.pagesPerSecond = t.getFloat64(80, !0), this.unitsAt = 88 + this.owners * gt, this.eventsAt = this.unitsAt + this.units * _t, this.samplesAt = this.eventsAt + this.events * vt, this.sampleBytes = 16 + 16 * this.owners;
		let i = this.samplesAt + this.samples * this.sampleBytes;
		if (i !== e.byteLength) throw new Ct(`a frame of ${e.byteLength} bytes says that it has ${i}; reload the page`);
	}
	ownerHostBytes(e) {
		return this.view.getFloat64(88 + e * gt, !0);
	}
	ownerCopiedOut(e) {
		return this.view.getFloat64(88 + e * gt + 8, !0);
	}
	ownerReceived(e) {
		return this.view.getFloat64(88 + e * gt + 16, !0);
	}
	ownerValidPages(e) {
		return this.view.getFloat64(88 + e * gt + 24, !0);
	}
	ownerUnits(e) {
		return this.view.getUint32(88 + e * gt + 32, !0);
	}
	ownerReclaimed(e) {
		return this.view.getUint32(88 + e * gt + 36, !0);
	}
	unit(e) {
		return this.view.getUint32(this.unitsAt + e * _t, !0);
	}
	unitState(e) {
		return this.view.getUint8(this.unitsAt + e * _t + 4);
	}
	unitOwner(e) {
		return this.view.getUint8(this.unitsAt + e * _t + 5);
	}
	unitGroup(e) {
		return this.view.getUint16(this.unitsAt + e * _t + 6, !0);
	}
	unitValid(e) {
		return this.view.getUint32(this.unitsAt + e * _t + 8, !0);
	}
	unitWritten(e) {
		return this.view.getUint32(this.unitsAt + e * _t + 12, !0);
	}
	event(e) {
		let t = this.eventsAt + e * vt, n = this.view, r = St[n.getUint8(t) - 1];
		if (r === void 0) throw new Ct(`an event has the unknown kind ${n.getUint8(t)}; reload the page`);
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
			destination: i === bt ? null : i,
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
}, Tt = {
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
globalThis.warpMeter = Tt;
// src/map/palette.ts
var Et = [
	"#0072B2",
	"#D55E00",
	"#009E73",
	"#CC79A7",
	"#E69F00",
	"#56B4E9"
], Dt = [
	"#77AADD",
	"#EE8866",
	"#EEDD88",
	"#44BB99",
	"#FFAABB",
	"#99DDFF",
	"#BBCC33",
	"#AAAA00"
], Ot = "#9AA0A6";
function kt(e, t) {
	let n = t > Et.length ? Dt : Et;
	return e.map((e, t) => e.isolation === null ? Ot : n[t % n.length]);
}
var At = {
	paper: "#FFFFFF",
	free: "#EDF0F2",
	ink: "#1F2328"
}, jt = {
	paper: "#0D1117",
	free: "#20262E",
	ink: "#E6EDF3"
};
function Mt(e) {
	let t = Number.parseInt(e.slice(1), 16);
	return [
		t >> 16 & 255,
		t >> 8 & 255,
		t & 255
	];
}
function Nt(e, t, n) {
	return [
		e[0] + (t[0] - e[0]) * n,
		e[1] + (t[1] - e[1]) * n,
		e[2] + (t[2] - e[2]) * n
	];
}
function Pt([e, t, n]) {
	return `rgb(${Math.round(e)} ${Math.round(t)} ${Math.round(n)})`;
}
var Ft = .3, It = 4096, Lt = 8, Rt = class {
	buffer = /* @__PURE__ */ new ArrayBuffer(It * Lt);
	places = new Uint16Array(this.buffer);
	looks = new Uint8Array(this.buffer);
	count = 0;
	add(e, t, n) {
		let r = this.count;
		this.places[r * 4] = e, this.places[r * 4 + 1] = t, this.looks[r * 8 + 4] = n & 255, this.looks[r * 8 + 5] = n >>> 8 & 255, this.looks[r * 8 + 6] = n >>> 16 & 255, this.looks[r * 8 + 7] = n >>> 24, this.count = r + 1;
	}
	get isFull() {
		return this.count === It;
	}
};
function zt(e, t, n, r) {
	let i = (e) => Math.min(255, Math.ceil(e * 255));
	return (e | t << 8 | i(n) << 16 | i(r) << 24) >>> 0;
}
// src/map/canvas2d.ts
var Bt = 6, Vt = 64;
function Ht([e, t, n]) {
	return (255 << 24 | Math.round(n) << 16 | Math.round(t) << 8 | Math.round(e)) >>> 0;
}
var Ut = class {
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
		let n = Mt(e.paper);
		this.paper = Ht(n), this.free = Ht(Mt(e.free)), this.ink = Ht(Mt(e.ink)), this.solid = Uint32Array.from(t, Ht), this.dead = Uint32Array.from(t, (e) => Ht(Nt(n, e, Ft))), this.shades = new Uint32Array(t.length * 2 * Vt), t.forEach((t, r) => {
			for (let i = 0; i < Vt; i += 1) {
				let a = Nt(Nt(n, t, Ft), t, i / 63);
				this.shades[(r * 2 + 0) * Vt + i] = Ht(a), this.shades[(r * 2 + 1) * Vt + i] = Ht(Nt(a, Mt(e.ink), .45));
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
			i < this.top && (this.top = i), i + t > this.bottom && (this.bottom = i + t), o === 7 ? this.fill(r, i, t, t, this.paper) : o === 0 || a === 255 ? this.fill(r, i, t, t, this.free) : t < Bt ? this.fill(r, i, t, t, this.shades[(a * 2 + (o === 3 ? 0 : 1)) * Vt + (s >> 2)]) : this.detail(r, i, a, o, s, c);
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
function Wt(e) {
	return e >= 14 ? e - 2 : e >= 5 ? e - 1 : e;
}
function Gt(e, t, n, r, i, a) {
	for (let o = Math.floor(26 * a); o > 2; --o) if (Kt(e, t, o, r, i) <= n) return o;
	return 2;
}
function Kt(e, t, n, r, i) {
	let a = Math.max(1, Math.floor(t / n));
	return e.reduce((e, t) => e + r + (Math.ceil(t / a) + i) * n, 0);
}
var qt = class {
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
			size: Wt(i.pitch),
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
		let n = this.keys.indexOf(t), r = this.regionOf[e];
		if (n < 0 || n === r) return "stays";
		let i = this.placeOf[e];
		return this.put(e, n) ? (this.places[i] = -1, i < this.firstEmpty[r] && (this.firstEmpty[r] = i), "moved") : "full";
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
function Jt(e) {
	return [...Array(e).keys(), 255];
}
// src/map/webgl.ts
var Yt = 160, Xt = "#version 300 es\nprecision highp float;\nlayout(location = 0) in vec2 place;\nlayout(location = 1) in uvec4 tileLook;\nuniform vec2 canvas;\nuniform float tile;\nflat out uvec4 v_look;\nvoid main() {\n    v_look = tileLook;\n    vec2 at = (place + tile * 0.5) / canvas * 2.0 - 1.0;\n    gl_Position = vec4(at.x, -at.y, 0.0, 1.0);\n    gl_PointSize = tile;\n}", Zt = "#version 300 es\nprecision highp float;\nflat in uvec4 v_look;\nuniform float tile;\nuniform vec3 paper;\nuniform vec3 freeColour;\nuniform vec3 ink;\nuniform float deadShare;\nuniform sampler2D owners;\nout vec4 colour;\nvoid main() {\n    uint state = v_look.y;\n    if (state == 7u) { colour = vec4(paper, 1.0); return; }\n    if (state == 0u || v_look.x == 255u) { colour = vec4(freeColour, 1.0); return; }\n    vec3 owner = texelFetch(owners, ivec2(int(v_look.x), 0), 0).rgb;\n    vec3 dead = mix(paper, owner, deadShare);\n    float valid = float(v_look.z) / 255.0;\n    float written = float(v_look.w) / 255.0;\n    if (tile < 6.0) {\n        vec3 blend = mix(dead, owner, valid);\n        colour = vec4(state == 3u ? blend : mix(blend, ink, 0.45), 1.0);\n        return;\n    }\n    vec2 v_at = gl_PointCoord * tile;\n    float row = tile - v_at.y;\n    float validRows = floor(valid * tile + 0.5);\n    float writtenRows = max(validRows, floor(written * tile + 0.5));\n    vec3 fill = row < validRows ? owner : row < writtenRows ? dead : freeColour;\n    if (state != 3u) {\n        float border = tile >= 12.0 ? 2.0 : 1.0;\n        vec2 edge = min(v_at, tile - v_at);\n        bool framed = min(edge.x, edge.y) < border;\n        float arm = max(2.0, floor(tile / 3.0 + 0.5));\n        if (framed && (state == 1u || max(edge.x, edge.y) < arm)) fill = ink;\n    }\n    colour = vec4(fill, 1.0);\n}";
function Qt(e, t, n) {
	let r = e.createShader(t);
	if (r === null) throw Error("no shader");
	if (e.shaderSource(r, n), e.compileShader(r), e.getShaderParameter(r, e.COMPILE_STATUS) !== !0) throw Error(e.getShaderInfoLog(r) ?? "a shader does not compile");
	return r;
}
var $t = class {
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
		if (t.attachShader(n, Qt(t, t.VERTEX_SHADER, Xt)), t.attachShader(n, Qt(t, t.FRAGMENT_SHADER, Zt)), t.linkProgram(n), t.getProgramParameter(n, t.LINK_STATUS) !== !0) throw Error(t.getProgramInfoLog(n) ?? "shaders do not link");
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
		this.buffer = r, t.bindBuffer(t.ARRAY_BUFFER, r), t.bufferData(t.ARRAY_BUFFER, It * 8, t.DYNAMIC_DRAW), t.enableVertexAttribArray(0), t.vertexAttribPointer(0, 2, t.UNSIGNED_SHORT, !1, 8, 0), t.enableVertexAttribArray(1), t.vertexAttribIPointer(1, 4, t.UNSIGNED_BYTE, 8, 4);
	}
	begin(e, t, n, r) {
		let { gl: i, at: a } = this;
		this.canvas.width = e, this.canvas.height = t, i.viewport(0, 0, e, t);
		let o = (e) => {
			let [t, n, r] = Mt(e);
			return [
				t / 255,
				n / 255,
				r / 255
			];
		}, s = o(r.ground.paper);
		i.clearColor(...s, 1), i.clear(i.COLOR_BUFFER_BIT), i.useProgram(this.program), i.uniform2f(a.canvas ?? null, e, t), i.uniform1f(a.tile ?? null, n), i.uniform3f(a.paper ?? null, ...s), i.uniform3f(a.freeColour ?? null, ...o(r.ground.free)), i.uniform3f(a.ink ?? null, ...o(r.ground.ink)), i.uniform1f(a.deadShare ?? null, Ft), i.uniform1i(a.owners ?? null, 0);
		let c = (/* @__PURE__ */ new Uint8Array(640)).fill(255);
		r.owners.slice(0, Yt).forEach((e, t) => c.set(e.map(Math.round), t * 4));
		let l = i.createTexture();
		i.bindTexture(i.TEXTURE_2D, l), i.texImage2D(i.TEXTURE_2D, 0, i.RGBA, Yt, 1, 0, i.RGBA, i.UNSIGNED_BYTE, c), i.texParameteri(i.TEXTURE_2D, i.TEXTURE_MIN_FILTER, i.NEAREST), i.texParameteri(i.TEXTURE_2D, i.TEXTURE_MAG_FILTER, i.NEAREST);
	}
	draw(e) {
		let { gl: t } = this;
		t.bindBuffer(t.ARRAY_BUFFER, this.buffer), t.bufferSubData(t.ARRAY_BUFFER, 0, e.looks, 0, e.count * 8), t.drawArrays(t.POINTS, 0, e.count);
	}
	show() {}
	end() {
		this.gl.getExtension("WEBGL_lose_context")?.loseContext();
	}
}, en = null;
function tn() {
	if (en === null) {
		let e = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: !0 }), t = e?.getExtension("WEBGL_debug_renderer_info"), n = e === null || !t ? "" : String(e.getParameter(t.UNMASKED_RENDERER_WEBGL));
		en = e !== null && !/swiftshader|llvmpipe|software|basic render/i.test(n), e?.getExtension("WEBGL_lose_context")?.loseContext();
	}
	return en;
}
// src/map/painter.ts
var nn = 28, rn = 620, an = 420, U = class {
	layout = null;
	focus = null;
	kind;
	tiles;
	above;
	renderer;
	batch = new Rt();
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
		this.tiles = e, this.above = i, this.state = n, this.options = r, this.renderer = W(e), this.kind = this.renderer.kind, Tt.renderer = this.kind;
	}
	arrange(e, t, n, r) {
		this.options = r, this.scale = n;
		let { state: i } = this, a = i.lane, o = Math.max(1, Math.floor(e * n));
		this.heading = r.grouping === "physical" ? 0 : Math.round(24 * n);
		let s = this.keys(), c = r.grouping === "handle", l = Gt(this.counts(s), o, t * n, this.heading, +!!c, n);
		this.layout = new qt(r.grouping, a.units, s, this.keyOf, {
			pitch: l,
			width: o
		}, this.heading);
		let u = c ? Math.max(Math.floor(t * n), this.layout.shape.height) : this.layout.shape.height, d = on(i);
		return this.isManyHandles = d > Et.length, this.colours = kt(a.owners, d), this.above.canvas.width = o, this.above.canvas.height = u, this.renderer.begin(o, Math.max(1, u), this.layout.shape.size, this.rendererColours()), this.drawnLooks = new Uint32Array(a.units).fill(4294967295), this.generation = i.generation, this.flights = [], this.isAboveClean = !1, this.drawAll(), u / n;
	}
	rendererColours() {
		return {
			ground: this.options.ground,
			owners: this.colours.map(Mt)
		};
	}
	keys() {
		let { lane: e } = this.state;
		return this.options.grouping === "physical" ? [0] : this.options.grouping === "group" ? [...Array(Math.max(1, e.groups)).keys()] : Jt(e.owners.length).filter((e) => e === 255 || this.isOwnerShown(e));
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
		if (r === 0) return zt(255, 0, 0, 0);
		let i = t.pagesOf(n);
		return zt(t.owner[n], r, t.valid[n] / i, t.written[n] / i);
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
		return this.layout === null || on(this.state) > Et.length !== this.isManyHandles || this.layout.shape.height > this.tiles.height || this.options.grouping === "handle" && this.keys().length !== this.layout.regions.length;
	}
	picture(e) {
		let t = performance.now(), { layout: n, state: r } = this;
		if (n === null) return !1;
		this.generation !== r.generation && (this.generation = r.generation, this.flights = [], this.redeal());
		let i = this.drawChanged(n);
		for (let t of r.moves) this.begin(t, e);
		r.moves.length = 0;
		let a = this.drawAbove(e);
		return Tt.picture(performance.now() - t, i), a;
	}
	drawChanged(e) {
		let { state: t } = this, n = this.options.grouping !== "physical", r = 0;
		for (let i = 0; i < t.changedCount; i += 1) {
			let a = t.changed[i];
			if (n) {
				let n = e.x[a], i = e.y[a], o = e.move(a, this.keyOf(a));
				if (o === "full") return this.redeal(), r + t.lane.units;
				o === "moved" && (this.put(n, i, zt(255, 7, 0, 0)), this.drawnLooks[a] = 4294967295);
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
		if (n === null || this.flights.length >= nn || e.unit >= this.state.lane.units) return;
		let r = n.shape.size / 2, i = e.destination !== null && e.destination < this.state.lane.units ? e.destination : e.unit;
		this.flights.push({
			begun: t,
			colour: this.colours[e.owner] ?? Pt(Mt(this.options.ground.ink)),
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
			e - n.begun > (n.flies ? rn : an) || (this.flights[r] = n, r += 1, this.drawFlight(n, e));
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
		let { above: n, layout: r } = this, i = r.shape.size, a = 1 - (t - e.begun) / an;
		if (a > 0) {
			n.globalAlpha = a, n.strokeStyle = this.options.ground.ink, n.lineWidth = Math.max(1, 1.5 * this.scale);
			let t = i + 2 + (this.options.moves ? (1 - a) * 6 : 2) * this.scale;
			n.strokeRect(e.fromX - t / 2, e.fromY - t / 2, t, t);
		}
		if (!e.flies) return;
		let o = Math.min(1, (t - e.begun) / rn), s = o * o * (3 - 2 * o);
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
function W(e) {
	let t = new URLSearchParams(globalThis.location?.search ?? "").get("renderer");
	if (t === "canvas" || t !== "webgl2" && !tn()) return new Ut(e);
	try {
		return new $t(e);
	} catch {
		return new Ut(e);
	}
}
function on(e) {
	let t = (t) => {
		let n = e.owners[t];
		return n !== void 0 && (n.units > 0 || n.hostBytes > 0);
	}, n = 0;
	return e.lane.owners.forEach((e, r) => {
		e.isolation !== null && t(r) && (n = r + 1);
	}), n;
}
// node_modules/preact/jsx-runtime/dist/jsxRuntime.mjs
var sn = Symbol.for("pv"), cn = 0;
Array.isArray;
function G(t, n, r, i, a, o) {
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
		constructor: sn,
		__v: --cn,
		__i: -1,
		__u: 0
	};
	return (a || o) && (u.__source = a, u.__self = o), e.vnode && e.vnode(u), u;
}
// src/parts/LaneTag.tsx
function K(e) {
	return String.fromCharCode(65 + e);
}
function ln({ index: e }) {
	let t = Bs[e % Bs.length];
	return /* @__PURE__ */ G("span", {
		class: "lane-tag",
		children: [/* @__PURE__ */ G("b", { children: K(e) }), /* @__PURE__ */ G("svg", {
			width: "26",
			height: "4",
			viewBox: "0 0 26 4",
			"aria-hidden": "true",
			children: /* @__PURE__ */ G("line", {
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
	let i = Ee();
	return /* @__PURE__ */ G("fieldset", {
		class: "choice",
		children: [/* @__PURE__ */ G("legend", {
			class: "hidden",
			children: e
		}), r.map(([e, r]) => /* @__PURE__ */ G("label", { children: [/* @__PURE__ */ G("input", {
			type: "radio",
			name: i,
			checked: t === e,
			onChange: () => n(e)
		}), /* @__PURE__ */ G("span", { children: r })] }, e))]
	});
}
function dn({ lanes: e, value: t }) {
	return e.length < 2 ? null : /* @__PURE__ */ G("label", {
		class: "inline",
		children: ["of", /* @__PURE__ */ G("select", {
			value: Math.min(t.value, e.length - 1),
			onChange: (e) => t.value = Number(e.currentTarget.value),
			children: e.map((e, t) => /* @__PURE__ */ G("option", {
				value: t,
				children: [
					K(t),
					" ",
					e.lane.name
				]
			}, t))
		})]
	});
}
// src/state/numbers.ts
var fn = [
	"B",
	"KiB",
	"MiB",
	"GiB",
	"TiB",
	"PiB"
];
function pn(e) {
	let t = 0, n = e;
	for (; n >= 1024 && t < fn.length - 1;) n /= 1024, t += 1;
	return `${mn(n)} ${fn[t]}`;
}
function mn(e) {
	return Number.isInteger(e) ? String(e) : e >= 100 ? e.toFixed(0) : e >= 10 ? e.toFixed(1) : e.toFixed(2);
}
function hn(e) {
	let t = e / 1e6;
	return `${t >= 1e3 ? vn(Math.round(t)) : mn(Number(t.toFixed(2)))} MB/s`;
}
function gn(e) {
	return e === null ? "–" : e.toFixed(3);
}
function _n(e) {
	let t = e * 100;
	return t === 0 ? "0 %" : t < .1 ? "<0.1 %" : `${t.toFixed(t >= 99.95 ? 0 : 1)} %`;
}
function vn(e) {
	return Math.round(e).toString().replace(/\B(?=(\d{3})+$)/g, " ");
}
function yn(e) {
	return e > 0 && e < .01 ? "<0.01" : e.toFixed(2);
}
function bn(e) {
	for (let [t, n] of [
		["s", 1e9],
		["ms", 1e6],
		["µs", 1e3]
	]) if (e >= n) return `${mn(Number((e / n).toPrecision(3)))} ${t}`;
	return `${Math.round(e)} ns`;
}
function xn(e) {
	return e >= 1e9 ? `${mn(Number((e / 1e9).toPrecision(3)))} G` : e >= 1e6 ? `${mn(Number((e / 1e6).toPrecision(3)))} M` : e >= 1e4 ? `${mn(Number((e / 1e3).toPrecision(3)))} k` : vn(e);
}
// src/state/series.ts
function Sn(e, t) {
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
function Cn(e, t, n) {
	let r = {
		x: [],
		y: []
	}, i = -1;
	for (let a = 0; a < e.length; a += 1) {
		let o = e.host(a);
		for (; i + 1 < a && e.at(a) - e.at(i + 1) >= n;) i += 1;
		let s = i < 0 ? 0 : e.host(i), c = i < 0 ? 0 : e.media(i);
		o <= 0 || (r.x.push(e.at(a) / t), r.y.push(o > s ? (e.media(a) - c) / (o - s) : null));
	}
	return r;
}
function wn(e) {
	let t = e.sampleHost.length;
	return {
		length: t + +(e.hostBytes > (t === 0 ? 0 : e.sampleHost.at(t - 1))),
		at: (n) => n < t ? e.sampleHost.at(n) : e.hostBytes,
		host: (n) => n < t ? e.sampleHost.at(n) : e.hostBytes,
		media: (n) => n < t ? e.sampleMedia.at(n) : e.mediaBytes
	};
}
function Tn(e, t) {
	let n = e.sampleOwnerHost[t], r = e.sampleOwnerCopied[t], i = e.lane.page_bytes;
	return {
		length: n === void 0 || r === void 0 ? 0 : n.length,
		at: (t) => e.sampleHost.at(t),
		host: (e) => n?.at(e) ?? 0,
		media: (e) => (n?.at(e) ?? 0) + (r?.at(e) ?? 0) * i
	};
}
function En(e, t) {
	let n = 0, r = 0;
	for (let i = 0; i < e.sampleHost.length && e.sampleHost.at(i) <= t; i += 1) n = e.sampleHost.at(i), r = e.sampleMedia.at(i);
	return e.hostBytes > n ? (e.mediaBytes - r) / (e.hostBytes - n) : null;
}
function Dn(e) {
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
// node_modules/uplot/dist/uPlot.esm.js
var On = !0, kn = "uplot", An = "u-hz", jn = "u-vt", Mn = "u-title", Nn = "u-wrap", Pn = "u-under", Fn = "u-over", In = "u-axis", Ln = "u-off", Rn = "u-select", zn = "u-cursor-x", Bn = "u-cursor-y", Vn = "u-cursor-pt", Hn = "u-legend", Un = "u-live", Wn = "u-inline", Gn = "u-series", Kn = "u-marker", qn = "u-label", Jn = "u-value", Yn = "width", Xn = "height", Zn = "top", Qn = "bottom", $n = "left", er = "right", tr = "#000", nr = "#0000", rr = "mousemove", ir = "mousedown", ar = "mouseup", or = "mouseenter", sr = "mouseleave", cr = "dblclick", lr = "resize", ur = "scroll", dr = "change", fr = "dppxchange", pr = "--", mr = typeof window < "u", hr = mr ? document : null, gr = mr ? window : null, _r = mr ? navigator : null, q, vr;
function yr() {
	let e = devicePixelRatio;
	q != e && (q = e, vr && Nr(dr, vr, yr), vr = matchMedia(`(min-resolution: ${q - .001}dppx) and (max-resolution: ${q + .001}dppx)`), Mr(dr, vr, yr), gr.dispatchEvent(new CustomEvent(fr)));
}
function br(e, t) {
	if (t != null) {
		let n = e.classList;
		!n.contains(t) && n.add(t);
	}
}
function xr(e, t) {
	let n = e.classList;
	n.contains(t) && n.remove(t);
}
function J(e, t, n) {
	e.style[t] = n + "px";
}
function Sr(e, t, n, r) {
	let i = hr.createElement(e);
	return t != null && br(i, t), n?.insertBefore(i, r), i;
}
function Cr(e, t) {
	return Sr("div", e, t);
}
var wr = /* @__PURE__ */ new WeakMap();
function Tr(e, t, n, r, i) {
	let a = "translate(" + t + "px," + n + "px)";
	a != wr.get(e) && (e.style.transform = a, wr.set(e, a), t < 0 || n < 0 || t > r || n > i ? br(e, Ln) : xr(e, Ln));
}
var Er = /* @__PURE__ */ new WeakMap();
function Dr(e, t, n) {
	let r = t + n;
	r != Er.get(e) && (Er.set(e, r), e.style.background = t, e.style.borderColor = n);
}
var Or = /* @__PURE__ */ new WeakMap();
function kr(e, t, n, r) {
	let i = t + "" + n;
	i != Or.get(e) && (Or.set(e, i), e.style.height = n + "px", e.style.width = t + "px", e.style.marginLeft = r ? -t / 2 + "px" : 0, e.style.marginTop = r ? -n / 2 + "px" : 0);
}
var Ar = { passive: !0 }, jr = {
	...Ar,
	capture: !0
};
function Mr(e, t, n, r) {
	t.addEventListener(e, n, r ? jr : Ar);
}
function Nr(e, t, n, r) {
	t.removeEventListener(e, n, Ar);
}
mr && yr();
function Pr(e, t, n, r) {
	let i;
	n ||= 0, r ||= t.length - 1;
	let a = r <= 2147483647;
	for (; r - n > 1;) i = a ? n + r >> 1 : ei((n + r) / 2), t[i] < e ? n = i : r = i;
	return e - t[n] <= t[r] - e ? n : r;
}
function Fr(e) {
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
var Ir = (e) => e != null, Lr = (e) => e != null && e > 0, Rr = Fr(Ir), zr = Fr(Lr);
function Br(e, t, n, r = 0, i = !1) {
	let a = i ? zr : Rr, o = i ? Lr : Ir;
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
	return [s ?? di, c ?? -di];
}
function Vr(e, t, n, r) {
	let i = oi(e), a = oi(t);
	e == t && (i == -1 ? (e *= n, t /= n) : (e /= n, t *= n));
	let o = n == 10 ? si : ci, s = i == 1 ? ei : ni, c = a == 1 ? ni : ei, l = s(o($r(e))), u = c(o($r(t))), d = ai(n, l), f = ai(n, u);
	return n == 10 && (l < 0 && (d = Q(d, -l)), u < 0 && (f = Q(f, -u))), r || n == 2 ? (e = d * i, t = f * a) : (e = Ti(e, d), t = wi(t, f)), [e, t];
}
function Hr(e, t, n, r) {
	let i = Vr(e, t, n, r);
	return e == 0 && (i[0] = 0), t == 0 && (i[1] = 0), i;
}
var Ur = .1, Wr = {
	mode: 3,
	pad: Ur
}, Gr = {
	pad: 0,
	soft: null,
	mode: 0
}, Kr = {
	min: Gr,
	max: Gr
};
function qr(e, t, n, r) {
	return Ii(n) ? Yr(e, t, n) : (Gr.pad = n, Gr.soft = r ? 0 : null, Gr.mode = r ? 3 : 0, Yr(e, t, Kr));
}
function Y(e, t) {
	return e ?? t;
}
function Jr(e, t, n) {
	for (t = Y(t, 0), n = Y(n, e.length - 1); t <= n;) {
		if (e[t] != null) return !0;
		t++;
	}
	return !1;
}
function Yr(e, t, n) {
	let r = n.min, i = n.max, a = Y(r.pad, 0), o = Y(i.pad, 0), s = Y(r.hard, -di), c = Y(i.hard, di), l = Y(r.soft, di), u = Y(i.soft, -di), d = Y(r.mode, 0), f = Y(i.mode, 0), p = t - e, m = si(p), h = ii($r(e), $r(t)), g = $r(si(h) - m);
	(p < 1e-24 || g > 10) && (p = 0, (e == 0 || t == 0) && (p = 1e-24, d == 2 && l != di && (a = 0), f == 2 && u != -di && (o = 0)));
	let _ = p || h || 1e3, v = ai(10, ei(si(_))), y = Q(Ti(e - _ * (p == 0 ? e == 0 ? .1 : 1 : a), v / 10), 24), b = e >= l && (d == 1 || d == 3 && y <= l || d == 2 && y >= l) ? l : di, x = ii(s, y < b && e >= b ? b : ri(b, y)), S = Q(wi(t + _ * (p == 0 ? t == 0 ? .1 : 1 : o), v / 10), 24), C = t <= u && (f == 1 || f == 3 && S >= u || f == 2 && S <= u) ? u : -di, w = ri(c, S > C && t <= C ? C : ii(C, S));
	return x == w && x == 0 && (w = 100), [x, w];
}
var Xr = new Intl.NumberFormat(mr ? _r.language : "en-US"), Zr = (e) => Xr.format(e), X = Math, Qr = X.PI, $r = X.abs, ei = X.floor, ti = X.round, ni = X.ceil, ri = X.min, ii = X.max, ai = X.pow, oi = X.sign, si = X.log10, ci = X.log2, li = (e, t = 1) => X.sinh(e) * t, ui = (e, t = 1) => X.asinh(e / t), di = Infinity;
function fi(e) {
	return (si((e ^ e >> 31) - (e >> 31)) | 0) + 1;
}
function pi(e, t, n) {
	return ri(ii(e, t), n);
}
function mi(e) {
	return typeof e == "function";
}
function Z(e) {
	return mi(e) ? e : () => e;
}
var hi = () => {}, gi = (e) => e, _i = (e, t) => t, vi = (e) => null, yi = (e) => !0, bi = (e, t) => e == t, xi = /\.\d*?(?=9{6,}|0{6,})/gm, Si = (e) => {
	if (Ni(e) || Ei.has(e)) return e;
	let t = `${e}`, n = t.match(xi);
	if (n == null) return e;
	let r = n[0].length - 1;
	if (t.indexOf("e-") != -1) {
		let [e, n] = t.split("e");
		return +`${Si(e)}e${n}`;
	}
	return Q(e, r);
};
function Ci(e, t) {
	return Si(Q(Si(e / t)) * t);
}
function wi(e, t) {
	return Si(ni(Si(e / t)) * t);
}
function Ti(e, t) {
	return Si(ei(Si(e / t)) * t);
}
function Q(e, t = 0) {
	if (Ni(e)) return e;
	let n = 10 ** t;
	return ti(e * n * (1 + 2 ** -52)) / n;
}
var Ei = /* @__PURE__ */ new Map();
function Di(e) {
	return (("" + e).split(".")[1] || "").length;
}
function Oi(e, t, n, r) {
	let i = [], a = r.map(Di);
	for (let o = t; o < n; o++) {
		let t = $r(o), n = Q(ai(e, o), t);
		for (let s = 0; s < r.length; s++) {
			let c = e == 10 ? +`${r[s]}e${o}` : r[s] * n, l = (o >= 0 ? 0 : t) + (o >= a[s] ? 0 : a[s]), u = e == 10 ? c : Q(c, l);
			i.push(u), Ei.set(u, l);
		}
	}
	return i;
}
var ki = {}, Ai = [], ji = [null, null], Mi = Array.isArray, Ni = Number.isInteger, Pi = (e) => e === void 0;
function Fi(e) {
	return typeof e == "string";
}
function Ii(e) {
	let t = !1;
	if (e != null) {
		let n = e.constructor;
		t = n == null || n == Object;
	}
	return t;
}
function Li(e) {
	return typeof e == "object" && !!e;
}
var Ri = Object.getPrototypeOf(Uint8Array), zi = "__proto__";
function Bi(e, t = Ii) {
	let n;
	if (Mi(e)) {
		let r = e.find((e) => e != null);
		if (Mi(r) || t(r)) {
			n = Array(e.length);
			for (let r = 0; r < e.length; r++) n[r] = Bi(e[r], t);
		} else n = e.slice();
	} else if (e instanceof Ri) n = e.slice();
	else if (t(e)) {
		n = {};
		for (let r in e) r != zi && (n[r] = Bi(e[r], t));
	} else n = e;
	return n;
}
function Vi(e) {
	let t = arguments;
	for (let n = 1; n < t.length; n++) {
		let r = t[n];
		for (let t in r) t != zi && (Ii(e[t]) ? Vi(e[t], Bi(r[t])) : e[t] = Bi(r[t]));
	}
	return e;
}
var Hi = 0, Ui = 1, Wi = 2;
function Gi(e, t, n) {
	for (let r = 0, i, a = -1; r < t.length; r++) {
		let o = t[r];
		if (o > a) {
			for (i = o - 1; i >= 0 && e[i] == null;) e[i--] = null;
			for (i = o + 1; i < n && e[i] == null;) e[a = i++] = null;
		}
	}
}
function Ki(e, t) {
	if (Yi(e)) {
		let t = e[0].slice();
		for (let n = 1; n < e.length; n++) t.push(...e[n].slice(1));
		return Xi(t[0]) || (t = Ji(t)), t;
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
			let c = o[e], l = Array(i).fill(void 0), u = t ? t[n][e] : Ui, d = [];
			for (let e = 0; e < c.length; e++) {
				let t = c[e], n = a.get(s[e]);
				t === null ? u != Hi && (l[n] = t, u == Wi && d.push(n)) : l[n] = t;
			}
			Gi(l, d, i), r.push(l);
		}
	}
	return r;
}
var qi = typeof queueMicrotask > "u" ? (e) => Promise.resolve().then(e) : queueMicrotask;
function Ji(e) {
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
function Yi(e) {
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
function Xi(e, t = 100) {
	let n = e.length;
	if (n <= 1) return !0;
	let r = 0, i = n - 1;
	for (; r <= i && e[r] == null;) r++;
	for (; i >= r && e[i] == null;) i--;
	if (i <= r) return !0;
	let a = ii(1, ei((i - r + 1) / t));
	for (let t = e[r], n = r + a; n <= i; n += a) {
		let r = e[n];
		if (r != null) {
			if (r <= t) return !1;
			t = r;
		}
	}
	return !0;
}
var Zi = [
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
], Qi = [
	"Sunday",
	"Monday",
	"Tuesday",
	"Wednesday",
	"Thursday",
	"Friday",
	"Saturday"
];
function $i(e) {
	return e.slice(0, 3);
}
var ea = Qi.map($i), ta = {
	MMMM: Zi,
	MMM: Zi.map($i),
	WWWW: Qi,
	WWW: ea
};
function na(e) {
	return (e < 10 ? "0" : "") + e;
}
function ra(e) {
	return (e < 10 ? "00" : e < 100 ? "0" : "") + e;
}
var ia = {
	YYYY: (e) => e.getFullYear(),
	YY: (e) => (e.getFullYear() + "").slice(2),
	MMMM: (e, t) => t.MMMM[e.getMonth()],
	MMM: (e, t) => t.MMM[e.getMonth()],
	MM: (e) => na(e.getMonth() + 1),
	M: (e) => e.getMonth() + 1,
	DD: (e) => na(e.getDate()),
	D: (e) => e.getDate(),
	WWWW: (e, t) => t.WWWW[e.getDay()],
	WWW: (e, t) => t.WWW[e.getDay()],
	HH: (e) => na(e.getHours()),
	H: (e) => e.getHours(),
	h: (e) => {
		let t = e.getHours();
		return t == 0 ? 12 : t > 12 ? t - 12 : t;
	},
	AA: (e) => e.getHours() >= 12 ? "PM" : "AM",
	aa: (e) => e.getHours() >= 12 ? "pm" : "am",
	a: (e) => e.getHours() >= 12 ? "p" : "a",
	mm: (e) => na(e.getMinutes()),
	m: (e) => e.getMinutes(),
	ss: (e) => na(e.getSeconds()),
	s: (e) => e.getSeconds(),
	fff: (e) => ra(e.getMilliseconds())
};
function aa(e, t) {
	t ||= ta;
	let n = [], r = /\{([a-z]+)\}|[^{]+/gi, i;
	for (; i = r.exec(e);) n.push(i[0][0] == "{" ? ia[i[1]] : i[0]);
	return (e) => {
		let r = "";
		for (let i = 0; i < n.length; i++) r += typeof n[i] == "string" ? n[i] : n[i](e, t);
		return r;
	};
}
var oa = new Intl.DateTimeFormat().resolvedOptions().timeZone;
function sa(e, t) {
	let n;
	return t == "UTC" || t == "Etc/UTC" ? n = /* @__PURE__ */ new Date(+e + e.getTimezoneOffset() * 6e4) : t == oa ? n = e : (n = new Date(e.toLocaleString("en-US", { timeZone: t })), n.setMilliseconds(e.getMilliseconds())), n;
}
var ca = (e) => e % 1 == 0, la = [
	1,
	2,
	2.5,
	5
], ua = Oi(10, -32, 0, la), da = Oi(10, 0, 32, la), fa = da.filter(ca), pa = ua.concat(da), ma = "\n", ha = "{YYYY}", ga = ma + ha, _a = "{M}/{D}", va = ma + _a, ya = va + "/{YY}", ba = "{aa}", xa = "{h}:{mm}" + ba, Sa = ma + xa, Ca = ":{ss}", $ = null;
function wa(e) {
	let t = e * 1e3, n = t * 60, r = n * 60, i = r * 24, a = i * 30, o = i * 365, s = (e == 1 ? Oi(10, 0, 3, la).filter(ca) : Oi(10, -3, 0, la)).concat([
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
			ha,
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
			ga,
			$,
			$,
			$,
			$,
			$,
			1
		],
		[
			i,
			_a,
			ga,
			$,
			$,
			$,
			$,
			$,
			1
		],
		[
			r,
			"{h}" + ba,
			ya,
			$,
			va,
			$,
			$,
			$,
			1
		],
		[
			n,
			xa,
			ya,
			$,
			va,
			$,
			$,
			$,
			1
		],
		[
			t,
			Ca,
			ya + " " + xa,
			$,
			va + " " + xa,
			$,
			Sa,
			$,
			1
		],
		[
			e,
			Ca + ".{fff}",
			ya + " " + xa,
			$,
			va + " " + xa,
			$,
			Sa,
			$,
			1
		]
	];
	function l(t) {
		return (s, c, l, u, d, f) => {
			let p = [], m = d >= o, h = d >= a && d < o, g = t(l), _ = Q(g * e, 3), v = Pa(g.getFullYear(), m ? 0 : g.getMonth(), h || m ? 1 : g.getDate()), y = Q(v * e, 3);
			if (h || m) {
				let n = h ? d / a : 0, r = m ? d / o : 0, i = _ == y ? _ : Q(Pa(v.getFullYear() + r, v.getMonth() + n, 1) * e, 3), s = new Date(ti(i / e)), c = s.getFullYear(), l = s.getMonth();
				for (let a = 0; i <= u; a++) {
					let o = Pa(c + r * a, l + n * a, 1), s = o - t(Q(o * e, 3));
					i = Q((+o + s) * e, 3), i <= u && p.push(i);
				}
			} else {
				let a = d >= i ? i : d, o = y + (ei(l) - ei(_)) + wi(_ - y, a);
				p.push(o);
				let m = t(o), h = m.getHours() + m.getMinutes() / n + m.getSeconds() / r, g = d / r, v = f / s.axes[c]._space;
				for (; o = Q(o + d, e == 1 ? 0 : 3), !(o > u);) if (g > 1) {
					let e = ei(Q(h + g, 6)) % 24, n = t(o).getHours() - e;
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
var [Ta, Ea, Da] = wa(1), [Oa, ka, Aa] = wa(.001);
Oi(2, -53, 53, [1]);
function ja(e, t) {
	return e.map((e) => e.map((n, r) => r == 0 || r == 8 || n == null ? n : t(r == 1 || e[8] == 0 ? n : e[1] + n)));
}
function Ma(e, t) {
	return (n, r, i, a, o) => {
		let s = t.find((e) => o >= e[0]) || t[t.length - 1], c, l, u, d, f, p;
		return r.map((t) => {
			let n = e(t), r = n.getFullYear(), i = n.getMonth(), a = n.getDate(), o = n.getHours(), m = n.getMinutes(), h = n.getSeconds(), g = r != c && s[2] || i != l && s[3] || a != u && s[4] || o != d && s[5] || m != f && s[6] || h != p && s[7] || s[1];
			return c = r, l = i, u = a, d = o, f = m, p = h, g(n);
		});
	};
}
function Na(e, t) {
	let n = aa(t);
	return (t, r, i, a, o) => r.map((t) => n(e(t)));
}
function Pa(e, t, n) {
	return new Date(e, t, n);
}
function Fa(e, t) {
	return t(e);
}
var Ia = "{YYYY}-{MM}-{DD} {h}:{mm}{aa}";
function La(e, t) {
	return (n, r, i, a) => a == null ? pr : t(e(r));
}
function Ra(e, t) {
	let n = e.series[t];
	return n.width ? n.stroke(e, t) : n.points.width ? n.points.stroke(e, t) : null;
}
function za(e, t) {
	return e.series[t].fill(e, t);
}
var Ba = {
	show: !0,
	live: !0,
	isolate: !1,
	mount: hi,
	markers: {
		show: !0,
		width: 2,
		stroke: Ra,
		fill: za,
		dash: "solid"
	},
	idx: null,
	idxs: null,
	values: []
};
function Va(e, t) {
	let n = e.cursor.points, r = Cr(), i = n.size(e, t);
	J(r, Yn, i), J(r, Xn, i);
	let a = i / -2;
	J(r, "marginLeft", a), J(r, "marginTop", a);
	let o = n.width(e, t, i);
	return o && J(r, "borderWidth", o), r;
}
function Ha(e, t) {
	let n = e.series[t].points;
	return n._fill || n._stroke;
}
function Ua(e, t) {
	let n = e.series[t].points;
	return n._stroke || n._fill;
}
function Wa(e, t) {
	return e.series[t].points.size;
}
var Ga = [0, 0];
function Ka(e, t, n) {
	return Ga[0] = t, Ga[1] = n, Ga;
}
function qa(e, t, n, r = !0) {
	return (e) => {
		e.button != 0 || r && e.target != t || n(e);
	};
}
function Ja(e, t, n, r = !0) {
	return (e) => {
		r && e.target != t || n(e);
	};
}
var Ya = {
	show: !0,
	x: !0,
	y: !0,
	lock: !1,
	move: Ka,
	points: {
		one: !1,
		show: Va,
		size: Wa,
		width: 0,
		stroke: Ua,
		fill: Ha
	},
	bind: {
		mousedown: qa,
		mouseup: qa,
		click: qa,
		dblclick: qa,
		mousemove: Ja,
		mouseleave: Ja,
		mouseenter: Ja
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
}, Xa = {
	show: !0,
	stroke: "rgba(0,0,0,0.07)",
	width: 2
}, Za = Vi({}, Xa, { filter: _i }), Qa = Vi({}, Za, { size: 10 }), $a = Vi({}, Xa, { show: !1 }), eo = "12px system-ui, -apple-system, \"Segoe UI\", Roboto, \"Helvetica Neue\", Arial, \"Noto Sans\", sans-serif, \"Apple Color Emoji\", \"Segoe UI Emoji\", \"Segoe UI Symbol\", \"Noto Color Emoji\"", to = "bold " + eo, no = 1.5, ro = {
	show: !0,
	scale: "x",
	stroke: tr,
	space: 50,
	gap: 5,
	alignTo: 1,
	size: 50,
	labelGap: 0,
	labelSize: 30,
	labelFont: to,
	side: 2,
	grid: Za,
	ticks: Qa,
	border: $a,
	font: eo,
	lineGap: no,
	rotate: 0
}, io = "Value", ao = "Time", oo = {
	show: !0,
	scale: "x",
	auto: !1,
	sorted: 1,
	min: di,
	max: -Infinity,
	idxs: []
};
function so(e, t, n, r, i) {
	return t.map((e) => e == null ? "" : Zr(e));
}
function co(e, t, n, r, i, a, o) {
	let s = [], c = Ei.get(i) || 0;
	n = o ? n : Q(wi(n, i), c);
	for (let e = n; e <= r; e = Q(e + i, c)) s.push(Object.is(e, -0) ? 0 : e);
	return s;
}
function lo(e, t, n, r, i, a, o) {
	let s = [], c = e.scales[e.axes[t].scale].log;
	i = ai(c, ei((c == 10 ? si : ci)(n))), c == 10 && (i = pa[Pr(i, pa)]);
	let l = n, u = i * c;
	c == 10 && (u = pa[Pr(u, pa)]);
	do
		s.push(l), l += i, c == 10 && !Ei.has(l) && (l = Q(l, Ei.get(i))), l >= u && (i = l, u = i * c, c == 10 && (u = pa[Pr(u, pa)]));
	while (l <= r);
	return s;
}
function uo(e, t, n, r, i, a, o) {
	let s = e.scales[e.axes[t].scale].asinh, c = r > s ? lo(e, t, ii(s, n), r, i) : [s], l = r >= 0 && n <= 0 ? [0] : [];
	return (n < -s ? lo(e, t, ii(s, -r), -n, i) : [s]).reverse().map((e) => -e).concat(l, c);
}
var fo = /./, po = /[12357]/, mo = /[125]/, ho = /1/, go = (e, t, n, r) => e.map((e, i) => t == 4 && e == 0 || i % r == 0 && n.test(e.toExponential()[+(e < 0)]) ? e : null);
function _o(e, t, n, r, i) {
	let a = e.axes[n], o = a.scale, s = e.scales[o], c = e.valToPos, l = a._space, u = c(10, o), d = c(9, o) - u >= l ? fo : c(7, o) - u >= l ? po : c(5, o) - u >= l ? mo : ho;
	if (d == ho) {
		let e = $r(c(1, o) - u);
		if (e < l) return go(t.slice().reverse(), s.distr, d, ni(l / e)).reverse();
	}
	return go(t, s.distr, d, 1);
}
function vo(e, t, n, r, i) {
	let a = e.axes[n], o = a.scale, s = a._space, c = e.valToPos, l = $r(c(1, o) - c(2, o));
	return l < s ? go(t.slice().reverse(), 3, fo, ni(s / l)).reverse() : t;
}
function yo(e, t, n, r) {
	return r == null ? pr : t == null ? "" : Zr(t);
}
var bo = {
	show: !0,
	scale: "y",
	stroke: tr,
	space: 30,
	gap: 5,
	alignTo: 1,
	size: 50,
	labelGap: 0,
	labelSize: 30,
	labelFont: to,
	side: 3,
	grid: Za,
	ticks: Qa,
	border: $a,
	font: eo,
	lineGap: no,
	rotate: 0
};
function xo(e, t) {
	return Q((3 + (e || 1) * 2) * t, 3);
}
function So(e, t) {
	let { scale: n, idxs: r } = e.series[0], i = e._data[0], a = e.valToPos(i[r[0]], n, !0), o = $r(e.valToPos(i[r[1]], n, !0) - a) / (e.series[t].points.space * q);
	return r[1] - r[0] <= o;
}
var Co = {
	scale: null,
	auto: !0,
	sorted: 0,
	min: di,
	max: -Infinity
}, wo = (e, t, n, r, i) => i, To = {
	show: !0,
	auto: !0,
	sorted: 0,
	gaps: wo,
	alpha: 1,
	facets: [Vi({}, Co, { scale: "x" }), Vi({}, Co, { scale: "y" })]
}, Eo = {
	scale: "y",
	auto: !0,
	sorted: 0,
	show: !0,
	spanGaps: !1,
	gaps: wo,
	alpha: 1,
	points: {
		show: So,
		filter: null
	},
	values: null,
	min: di,
	max: -Infinity,
	idxs: [],
	path: null,
	clip: null
};
function Do(e, t, n, r, i) {
	return n / 10;
}
var Oo = {
	time: On,
	auto: !0,
	distr: 1,
	log: 10,
	asinh: 1,
	min: null,
	max: null,
	dir: 1,
	ori: 0
}, ko = Vi({}, Oo, {
	time: !1,
	ori: 1
}), Ao = {};
function jo(e, t) {
	let n = Ao[e];
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
	}, e != null && (Ao[e] = n)), n;
}
var Mo = 1, No = 2;
function Po(e, t, n) {
	let r = e.mode, i = e.series[t], a = r == 2 ? e._data[t] : e._data, o = e.scales, s = e.bbox, c = a[0], l = r == 2 ? a[1] : a[t], u = r == 2 ? o[i.facets[0].scale] : o[e.series[0].scale], d = r == 2 ? o[i.facets[1].scale] : o[i.scale], f = s.left, p = s.top, m = s.width, h = s.height, g = e.valToPosH, _ = e.valToPosV;
	return u.ori == 0 ? n(i, c, l, u, d, g, _, f, p, m, h, Uo, Go, qo, Yo, Zo) : n(i, c, l, u, d, _, g, p, f, h, m, Wo, Ko, Jo, Xo, Qo);
}
function Fo(e, t) {
	let n = 0, r = 0, i = Y(e.bands, Ai);
	for (let e = 0; e < i.length; e++) {
		let a = i[e];
		a.series[0] == t ? n = a.dir : a.series[1] == t && (a.dir == 1 ? r |= 1 : r |= 2);
	}
	return [n, r == 1 ? -1 : r == 2 ? 1 : r == 3 ? 2 : 0];
}
function Io(e, t, n, r, i) {
	let a = e.mode, o = e.series[t], s = a == 2 ? o.facets[1].scale : o.scale, c = e.scales[s];
	return i == -1 ? c.min : i == 1 ? c.max : c.distr == 3 ? c.dir == 1 ? c.min : c.max : 0;
}
function Lo(e, t, n, r, i, a) {
	return Po(e, t, (e, t, o, s, c, l, u, d, f, p, m) => {
		let h = e.pxRound, g = s.dir * (s.ori == 0 ? 1 : -1), _ = s.ori == 0 ? Go : Ko, v, y;
		g == 1 ? (v = n, y = r) : (v = r, y = n);
		let b = h(l(t[v], s, p, d)), x = h(u(o[v], c, m, f)), S = h(l(t[y], s, p, d)), C = h(u(a == 1 ? c.max : c.min, c, m, f)), w = new Path2D(i);
		return _(w, S, C), _(w, b, C), _(w, b, x), w;
	});
}
function Ro(e, t, n, r, i, a) {
	let o = null;
	if (e.length > 0) {
		o = new Path2D();
		let s = t == 0 ? qo : Jo, c = n;
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
function zo(e, t, n) {
	let r = e[e.length - 1];
	r && r[0] == t ? r[1] = n : e.push([t, n]);
}
function Bo(e, t, n, r, i, a, o) {
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
function Vo(e) {
	return e == 0 ? gi : e == 1 ? ti : (t) => Ci(t, e);
}
function Ho(e) {
	let t = e == 0 ? Uo : Wo, n = e == 0 ? (e, t, n, r, i, a) => {
		e.arcTo(t, n, r, i, a);
	} : (e, t, n, r, i, a) => {
		e.arcTo(n, t, i, r, a);
	}, r = e == 0 ? (e, t, n, r, i) => {
		e.rect(t, n, r, i);
	} : (e, t, n, r, i) => {
		e.rect(n, t, i, r);
	};
	return (e, i, a, o, s, c = 0, l = 0) => {
		c == 0 && l == 0 ? r(e, i, a, o, s) : (c = ri(c, o / 2, s / 2), l = ri(l, o / 2, s / 2), t(e, i + c, a), n(e, i + o, a, i + o, a + s, c), n(e, i + o, a + s, i, a + s, l), n(e, i, a + s, i, a, l), n(e, i, a, i + o, a, c), e.closePath());
	};
}
var Uo = (e, t, n) => {
	e.moveTo(t, n);
}, Wo = (e, t, n) => {
	e.moveTo(n, t);
}, Go = (e, t, n) => {
	e.lineTo(t, n);
}, Ko = (e, t, n) => {
	e.lineTo(n, t);
}, qo = Ho(0), Jo = Ho(1), Yo = (e, t, n, r, i, a) => {
	e.arc(t, n, r, i, a);
}, Xo = (e, t, n, r, i, a) => {
	e.arc(n, t, r, i, a);
}, Zo = (e, t, n, r, i, a, o) => {
	e.bezierCurveTo(t, n, r, i, a, o);
}, Qo = (e, t, n, r, i, a, o) => {
	e.bezierCurveTo(n, t, i, r, o, a);
};
function $o(e) {
	return (e, t, n, r, i) => Po(e, t, (t, a, o, s, c, l, u, d, f, p, m) => {
		let { pxRound: h, points: g } = t, _, v;
		s.ori == 0 ? (_ = Uo, v = Yo) : (_ = Wo, v = Xo);
		let y = Q(g.width * q, 3), b = (g.size - g.width) / 2 * q, x = Q(b * 2, 3), S = new Path2D(), C = new Path2D(), { left: w, top: T, width: E, height: D } = e.bbox;
		qo(C, w - x, T - x, E + x * 2, D + x * 2);
		let O = (e) => {
			if (o[e] != null) {
				let t = h(l(a[e], s, p, d)), n = h(u(o[e], c, m, f));
				_(S, t + b, n), v(S, t, n, b, 0, Qr * 2);
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
function es(e) {
	return (t, n, r, i, a, o) => {
		r != i && (a != r && o != r && e(t, n, r), a != i && o != i && e(t, n, i), e(t, n, o));
	};
}
var ts = es(Go), ns = es(Ko);
function rs(e) {
	let t = Y(e?.alignGaps, 0);
	return (e, n, r, i) => Po(e, n, (a, o, s, c, l, u, d, f, p, m, h) => {
		[r, i] = Rr(s, r, i);
		let g = a.pxRound, _ = (e) => g(u(e, c, m, f)), v = (e) => g(d(e, l, h, p)), y, b;
		c.ori == 0 ? (y = Go, b = ts) : (y = Ko, b = ns);
		let x = c.dir * (c.ori == 0 ? 1 : -1), S = {
			stroke: new Path2D(),
			fill: null,
			clip: null,
			band: null,
			gaps: null,
			flags: Mo
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
		let [T, E] = Fo(e, n);
		if (a.fill != null || T != 0) {
			let t = S.fill = new Path2D(C), s = v(a.fillTo(e, n, a.min, a.max, T)), c = _(o[r]), l = _(o[i]);
			x == -1 && ([l, c] = [c, l]), y(t, l, s), y(t, c, s);
		}
		if (!a.spanGaps) {
			let l = [];
			w && l.push(...Bo(o, s, r, i, x, _, t)), S.gaps = l = a.gaps(e, n, r, i, l), S.clip = Ro(l, c.ori, f, p, m, h);
		}
		return E != 0 && (S.band = E == 2 ? [Lo(e, n, r, i, C, -1), Lo(e, n, r, i, C, 1)] : Lo(e, n, r, i, C, E)), S;
	});
}
function is(e) {
	let t = Y(e.align, 1), n = Y(e.ascDesc, !1), r = Y(e.alignGaps, 0), i = Y(e.extend, !1);
	return (e, a, o, s) => Po(e, a, (c, l, u, d, f, p, m, h, g, _, v) => {
		[o, s] = Rr(u, o, s);
		let y = c.pxRound, { left: b, width: x } = e.bbox, S = (e) => y(p(e, d, _, h)), C = (e) => y(m(e, f, v, g)), w = d.ori == 0 ? Go : Ko, T = {
			stroke: new Path2D(),
			fill: null,
			clip: null,
			band: null,
			gaps: null,
			flags: Mo
		}, E = T.stroke, D = d.dir * (d.ori == 0 ? 1 : -1), O = C(u[D == 1 ? o : s]), k = S(l[D == 1 ? o : s]), ee = k, A = k;
		i && t == -1 && (A = b, w(E, A, O)), w(E, k, O);
		for (let e = D == 1 ? o : s; e >= o && e <= s; e += D) {
			let n = u[e];
			if (n == null) continue;
			let r = S(l[e]), i = C(n);
			t == 1 ? w(E, r, O) : w(E, ee, i), w(E, r, i), O = i, ee = r;
		}
		let te = ee;
		i && t == 1 && (te = b + x, w(E, te, O));
		let [ne, re] = Fo(e, a);
		if (c.fill != null || ne != 0) {
			let t = T.fill = new Path2D(E), n = C(c.fillTo(e, a, c.min, c.max, ne));
			w(t, te, n), w(t, A, n);
		}
		if (!c.spanGaps) {
			let i = [];
			i.push(...Bo(l, u, o, s, D, S, r));
			let f = c.width * q / 2, p = n || t == 1 ? f : -f, m = n || t == -1 ? -f : f;
			i.forEach((e) => {
				e[0] += p, e[1] += m;
			}), T.gaps = i = c.gaps(e, a, o, s, i), T.clip = Ro(i, d.ori, h, g, _, v);
		}
		return re != 0 && (T.band = re == 2 ? [Lo(e, a, o, s, E, -1), Lo(e, a, o, s, E, 1)] : Lo(e, a, o, s, E, re)), T;
	});
}
function as(e, t, n, r, i, a, o = di) {
	if (e.length > 1) {
		let s = null;
		for (let c = 0, l = Infinity; c < e.length; c++) if (t[c] !== void 0) {
			if (s != null) {
				let t = $r(e[c] - e[s]);
				t < l && (l = t, o = $r(n(e[c], r, i, a) - n(e[s], r, i, a)));
			}
			s = c;
		}
	}
	return o;
}
function os(e) {
	e ||= ki;
	let t = Y(e.size, [
		.6,
		di,
		1
	]), n = e.align || 0, r = e.gap || 0, i = e.radius;
	i = i == null ? [0, 0] : typeof i == "number" ? [i, 0] : i;
	let a = Z(i), o = 1 - t[0], s = Y(t[1], di), c = Y(t[2], 1), l = Y(e.disp, ki), u = Y(e.each, (e) => {}), { fill: d, stroke: f } = l;
	return (e, t, i, p) => Po(e, t, (m, h, g, _, v, y, b, x, S, C, w) => {
		let T = m.pxRound, E = n, D = r * q, O = s * q, k = c * q, ee, A;
		_.ori == 0 ? [ee, A] = a(e, t) : [A, ee] = a(e, t);
		let te = _.dir * (_.ori == 0 ? 1 : -1), ne = _.ori == 0 ? qo : Jo, re = _.ori == 0 ? u : (e, t, n, r, i, a, o) => {
			u(e, t, n, i, r, o, a);
		}, ie = Y(e.bands, Ai).find((e) => e.series[0] == t), ae = ie == null ? 0 : ie.dir, oe = m.fillTo(e, t, m.min, m.max, ae), j = T(b(oe, v, w, S)), M, N, se, P = C, F = T(m.width * q), ce = !1, I = null, le = null, ue = null, de = null;
		d != null && (F == 0 || f != null) && (ce = !0, I = d.values(e, t, i, p), le = /* @__PURE__ */ new Map(), new Set(I).forEach((e) => {
			e != null && le.set(e, new Path2D());
		}), F > 0 && (ue = f.values(e, t, i, p), de = /* @__PURE__ */ new Map(), new Set(ue).forEach((e) => {
			e != null && de.set(e, new Path2D());
		})));
		let { x0: fe, size: pe } = l;
		if (fe != null && pe != null) {
			E = 1, h = fe.values(e, t, i, p), fe.unit == 2 && (h = h.map((t) => e.posToVal(x + t * C, _.key, !0)));
			let n = pe.values(e, t, i, p);
			N = pe.unit == 2 ? n[0] * C : y(n[0], _, C, x) - y(0, _, C, x), P = as(h, g, y, _, C, x, P), se = P - N + D;
		} else P = as(h, g, y, _, C, x, P), se = P * o + D, N = P - se;
		se < 1 && (se = 0), F >= N / 2 && (F = 0), se < 5 && (T = gi);
		let me = se > 0, L = P - se - (me ? F : 0);
		N = T(pi(L, k, O)), M = (E == 0 ? N / 2 : E == te ? 0 : N) - E * te * ((E == 0 ? D / 2 : 0) + (me ? F / 2 : 0));
		let he = {
			stroke: null,
			fill: null,
			clip: null,
			band: null,
			gaps: null,
			flags: 0
		}, ge = ce ? null : new Path2D(), _e = null;
		if (ie != null) _e = e.data[ie.series[1]];
		else {
			let { y0: n, y1: r } = l;
			n != null && r != null && (g = r.values(e, t, i, p), _e = n.values(e, t, i, p));
		}
		let ve = ee * N, ye = A * N;
		for (let n = te == 1 ? i : p; n >= i && n <= p; n += te) {
			let r = g[n];
			if (r == null) continue;
			if (_e != null) {
				let e = _e[n] ?? 0;
				if (r - e == 0) continue;
				j = b(e, v, w, S);
			}
			let i = y(_.distr != 2 || l != null ? h[n] : n, _, C, x), a = b(Y(r, oe), v, w, S), o = T(i - M), s = T(ii(a, j)), c = T(ri(a, j)), u = s - c;
			if (r != null) {
				let i = r < 0 ? ye : ve, a = r < 0 ? ve : ye;
				ce ? (F > 0 && ue[n] != null && ne(de.get(ue[n]), o, c + ei(F / 2), N, ii(0, u - F), i, a), I[n] != null && ne(le.get(I[n]), o, c + ei(F / 2), N, ii(0, u - F), i, a)) : ne(ge, o, c + ei(F / 2), N, ii(0, u - F), i, a), re(e, t, n, o - F / 2, c, N + F, u);
			}
		}
		return F > 0 ? he.stroke = ce ? de : ge : ce || (he._fill = m.width == 0 ? m._fill : m._stroke ?? m._fill, he.width = 0), he.fill = ce ? le : ge, he;
	});
}
function ss(e, t) {
	let n = Y(t?.alignGaps, 0);
	return (t, r, i, a) => Po(t, r, (o, s, c, l, u, d, f, p, m, h, g) => {
		[i, a] = Rr(c, i, a);
		let _ = o.pxRound, v = (e) => _(d(e, l, h, p)), y = (e) => _(f(e, u, g, m)), b, x, S;
		l.ori == 0 ? (b = Uo, S = Go, x = Zo) : (b = Wo, S = Ko, x = Qo);
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
			flags: Mo
		}, k = O.stroke, [ee, A] = Fo(t, r);
		if (o.fill != null || ee != 0) {
			let e = O.fill = new Path2D(k), n = y(o.fillTo(t, r, o.min, o.max, ee));
			S(e, T, n), S(e, w, n);
		}
		if (!o.spanGaps) {
			let e = [];
			e.push(...Bo(s, c, i, a, C, v, n)), O.gaps = e = o.gaps(t, r, i, a, e), O.clip = Ro(e, l.ori, p, m, h, g);
		}
		return A != 0 && (O.band = A == 2 ? [Lo(t, r, i, a, k, -1), Lo(t, r, i, a, k, 1)] : Lo(t, r, i, a, k, A)), O;
	});
}
function cs(e) {
	return ss(ls, e);
}
function ls(e, t, n, r, i, a) {
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
var us = /* @__PURE__ */ new Set();
function ds() {
	for (let e of us) e.syncRect(!0);
}
mr && (Mr(lr, gr, ds), Mr(ur, gr, ds, !0), Mr(fr, gr, () => {
	Ds.pxRatio = q;
}));
var fs = rs(), ps = $o();
function ms(e, t, n, r) {
	return (r ? [e[0], e[1]].concat(e.slice(2)) : [e[0]].concat(e.slice(1))).map((e, r) => gs(e, r, t, n));
}
function hs(e, t) {
	return e.map((e, n) => n == 0 ? {} : Vi({}, t, e));
}
function gs(e, t, n, r) {
	return Vi({}, t == 0 ? n : r, e);
}
function _s(e, t, n) {
	return t == null ? ji : [t, n];
}
var vs = _s;
function ys(e, t, n) {
	return t == null ? ji : qr(t, n, Ur, !0);
}
function bs(e, t, n, r) {
	return t == null ? ji : Vr(t, n, e.scales[r].log, !1);
}
var xs = bs;
function Ss(e, t, n, r) {
	return t == null ? ji : Hr(t, n, e.scales[r].log, !1);
}
var Cs = Ss;
function ws(e, t, n, r, i) {
	let a = ii(fi(e), fi(t)), o = t - e, s = Pr(i / r * o, n);
	do {
		let e = n[s], t = r * e / o;
		if (t >= i && a + (e < 5 ? Ei.get(e) : 0) <= 17) return [e, t];
	} while (++s < n.length);
	return [0, 0];
}
function Ts(e) {
	let t, n;
	return e = e.replace(/(\d+)px/, (e, r) => (t = ti((n = +r) * q)) + "px"), [
		e,
		t,
		n
	];
}
function Es(e) {
	e.show && [e.font, e.labelFont].forEach((e) => {
		let t = Q(e[2] * q, 1);
		e[0] = e[0].replace(/[0-9.]+px/, t + "px"), e[1] = t;
	});
}
function Ds(e, t, n) {
	let r = { mode: Y(e.mode, 1) }, i = r.mode;
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
	let l = r.root = Cr(kn);
	if (e.id != null && (l.id = e.id), br(l, e.class), e.title) {
		let t = Cr(Mn, l);
		t.textContent = e.title;
	}
	let u = Sr("canvas"), d = r.ctx = u.getContext("2d"), f = Cr(Nn, l);
	Mr("click", f, (e) => {
		e.target === m && (U != tn || W != nn) && sn.click(r, e);
	}, !0);
	let p = r.under = Cr(Pn, f);
	f.appendChild(u);
	let m = r.over = Cr(Fn, f);
	e = Bi(e);
	let h = +Y(e.pxAlign, 1), g = Vo(h);
	(e.plugins || []).forEach((t) => {
		t.opts && (e = t.opts(r, e) || e);
	});
	let _ = e.ms || .001, v = r.series = i == 1 ? ms(e.series || [], oo, Eo, !1) : hs(e.series || [null], To), y = r.axes = ms(e.axes || [], ro, bo, !0), b = r.scales = {}, x = r.bands = e.bands || [];
	x.forEach((e) => {
		e.fill = Z(e.fill || null), e.dir = Y(e.dir, -1);
	});
	let S = i == 2 ? v[1].facets[0].scale : v[0].scale, C = {
		axes: zt,
		series: Ot
	}, w = (e.drawOrder || ["axes", "series"]).map((e) => C[e]);
	function T(e) {
		let t = e.distr == 3 ? (t) => si(t > 0 ? t : e.clamp(r, t, e.min, e.max, e.key)) : e.distr == 4 ? (t) => ui(t, e.asinh) : e.distr == 100 ? (t) => e.fwd(t) : (e) => e;
		return (n) => {
			let r = t(n), { _min: i, _max: a } = e, o = a - i;
			return (r - i) / o;
		};
	}
	function E(t) {
		let n = b[t];
		if (n == null) {
			let r = (e.scales || ki)[t] || ki;
			if (r.from != null) {
				E(r.from);
				let e = Vi({}, b[r.from], r, { key: t });
				e.valToPct = T(e), b[t] = e;
			} else {
				n = b[t] = Vi({}, t == S ? Oo : ko, r), n.key = t;
				let e = n.time, a = n.range, o = Mi(a);
				if ((t != S || i == 2 && !e) && (o && (a[0] == null || a[1] == null) && (a = {
					min: a[0] == null ? Wr : {
						mode: 1,
						hard: a[0],
						soft: a[0]
					},
					max: a[1] == null ? Wr : {
						mode: 1,
						hard: a[1],
						soft: a[1]
					}
				}, o = !1), !o && Ii(a))) {
					let e = a;
					a = (t, n, r) => n == null ? ji : qr(n, r, e);
				}
				n.range = Z(a || (e ? vs : t == S ? n.distr == 3 ? xs : n.distr == 4 ? Cs : _s : n.distr == 3 ? bs : n.distr == 4 ? Ss : ys)), n.auto = Z(!o && n.auto), n.clamp = Z(n.clamp || Do), n._min = n._max = null, n.valToPct = T(n);
			}
		}
	}
	E("x"), E("y"), i == 1 && v.forEach((e) => {
		E(e.scale);
	}), y.forEach((e) => {
		E(e.scale);
	});
	for (let t in e.scales) E(t);
	let D = b[S], O = D.distr, k, ee;
	D.ori == 0 ? (br(l, An), k = a, ee = o) : (br(l, jn), k = o, ee = a);
	let A = {};
	for (let e in b) {
		let t = b[e];
		(t.min != null || t.max != null) && (A[e] = {
			min: t.min,
			max: t.max
		}, t.min = t.max = null);
	}
	let te = e.tzDate || ((e) => new Date(ti(e / _))), ne = e.fmtDate || aa, re = _ == 1 ? Da(te) : Aa(te), ie = Ma(te, ja(_ == 1 ? Ea : ka, ne)), ae = La(te, Fa(Ia, ne)), oe = [], j = r.legend = Vi({}, Ba, e.legend), M = r.cursor = Vi({}, Ya, { drag: { y: i == 2 } }, e.cursor), N = j.show, se = M.show, P = j.markers;
	j.idxs = oe, P.width = Z(P.width), P.dash = Z(P.dash), P.stroke = Z(P.stroke), P.fill = Z(P.fill);
	let F, ce, I, le = [], ue = [], de, fe = !1, pe = {};
	if (j.live) {
		let e = v[1] ? v[1].values : null;
		fe = e != null, de = fe ? e(r, 1, 0) : { _: 0 };
		for (let e in de) pe[e] = pr;
	}
	if (N) {
		if (F = Sr("table", Hn, l), I = Sr("tbody", null, F), j.mount(r, F), fe) {
			ce = Sr("thead", null, F, I);
			let e = Sr("tr", null, ce);
			for (var me in Sr("th", null, e), de) Sr("th", qn, e).textContent = me;
		} else br(F, Wn), j.live && br(F, Un);
	}
	let L = { show: !0 }, he = { show: !1 };
	function ge(e, t) {
		if (t == 0 && (fe || !j.live || i == 2)) return ji;
		let n = [], a = Sr("tr", Gn, I, I.childNodes[t]);
		br(a, e.class), e.show || br(a, Ln);
		let o = Sr("th", null, a);
		if (P.show) {
			let e = Cr(Kn, o);
			if (t > 0) {
				let n = P.width(r, t);
				n && (e.style.border = n + "px " + P.dash(r, t) + " " + P.stroke(r, t)), e.style.background = P.fill(r, t);
			}
		}
		let s = Cr(qn, o);
		for (var c in e.label instanceof HTMLElement ? s.appendChild(e.label) : s.textContent = e.label, t > 0 && (P.show || (s.style.color = e.width > 0 ? P.stroke(r, t) : P.fill(r, t)), ve("click", o, (t) => {
			if (M._lock) return;
			Ue(t);
			let n = v.indexOf(e);
			if ((t.ctrlKey || t.metaKey) != j.isolate) {
				let e = v.some((e, t) => t > 0 && t != n && e.show);
				v.forEach((t, r) => {
					r > 0 && pn(r, e ? r == n ? L : he : L, !0, X.setSeries);
				});
			} else pn(n, { show: !e.show }, !0, X.setSeries);
		}, !1), Ke && ve(or, o, (t) => {
			M._lock || (Ue(t), pn(v.indexOf(e), xn, !0, X.setSeries));
		}, !1)), de) {
			let e = Sr("td", Jn, a);
			e.textContent = "--", n.push(e);
		}
		return [a, n];
	}
	let _e = /* @__PURE__ */ new Map();
	function ve(e, t, n, i = !0) {
		let a = _e.get(t) || {}, o = M.bind[e](r, t, n, i);
		o && (Mr(e, t, a[e] = o), _e.set(t, a));
	}
	function ye(e, t, n) {
		let r = _e.get(t) || {};
		for (let n in r) (e == null || n == e) && (Nr(n, t, r[n]), delete r[n]);
		e ?? _e.delete(t);
	}
	let be = 0, xe = 0, R = 0, z = 0, Se = 0, Ce = 0, we = Se, Te = Ce, Ee = R, De = z, Oe = 0, ke = 0, Ae = 0, je = 0;
	r.bbox = {};
	let Me = !1, Ne = !1, Pe = !1, Fe = !1, Ie = !1, Le = !1;
	function Re(e, t, n) {
		(n || e != r.width || t != r.height) && B(e, t), Bt(!1), Pe = !0, Ne = !0, Gt();
	}
	function B(e, t) {
		r.width = be = R = e, r.height = xe = z = t, Se = Ce = 0, Ve(), He();
		let n = r.bbox;
		Oe = n.left = Ci(Se * q, .5), ke = n.top = Ci(Ce * q, .5), Ae = n.width = Ci(R * q, .5), je = n.height = Ci(z * q, .5);
	}
	function ze() {
		let e = !1, t = 0;
		for (; !e;) {
			t++;
			let n = Lt(t), i = Rt(t);
			e = t == 3 || n && i, e || (B(r.width, r.height), Ne = !0);
		}
	}
	function Be({ width: e, height: t }) {
		Re(e, t);
	}
	r.setSize = Be;
	function Ve() {
		let e = !1, t = !1, n = !1, r = !1;
		y.forEach((i, a) => {
			if (i.show && i._show) {
				let { side: a, _size: o } = i, s = a % 2, c = o + (i.label == null ? 0 : i.labelSize);
				c > 0 && (s ? (R -= c, a == 3 ? (Se += c, r = !0) : n = !0) : (z -= c, a == 0 ? (Ce += c, e = !0) : t = !0));
			}
		}), $e[0] = e, $e[1] = n, $e[2] = t, $e[3] = r, R -= rt[1] + rt[3], Se += rt[3], z -= rt[2] + rt[0], Ce += rt[0];
	}
	function He() {
		let e = Se + R, t = Ce + z, n = Se, r = Ce;
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
	if (M.dataIdx == null) {
		let e = M.hover, n = e.skip = new Set(e.skip ?? []);
		n.add(void 0);
		let r = e.prox = Z(e.prox), i = e.bias ??= 0;
		M.dataIdx = (e, a, o, s) => {
			if (a == 0) return o;
			let c = o, l = r(e, a, o, s) ?? di, u = l >= 0 && l < di, d = D.ori == 0 ? R : z, f = M.left, p = t[0], m = t[a];
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
			} else u && $r(f - k(p[o], D, d, 0)) > l && (c = null);
			return c;
		};
	}
	let Ue = (e) => {
		M.event = e;
	};
	M.idxs = oe, M._lock = !1;
	let We = M.points;
	We.show = Z(We.show), We.size = Z(We.size), We.stroke = Z(We.stroke), We.width = Z(We.width), We.fill = Z(We.fill);
	let Ge = r.focus = Vi({}, e.focus || { alpha: .3 }, M.focus), Ke = Ge.prox >= 0, qe = Ke && We.one, V = [], H = [], Je = [];
	function Ye(e, t) {
		let n = We.show(r, t);
		if (n instanceof HTMLElement) return br(n, Vn), br(n, e.class), Tr(n, -10, -10, R, z), m.insertBefore(n, V[t]), n;
	}
	function Xe(e, t) {
		if (i == 1 || t > 0) {
			let t = i == 1 && b[e.scale].time, n = e.value;
			e.value = t ? Fi(n) ? La(te, Fa(n, ne)) : n || ae : n || yo, e.label = e.label || (t ? ao : io);
		}
		if (qe || t > 0) {
			e.width = e.width == null ? 1 : e.width, e.paths = e.paths || fs || vi, e.fillTo = Z(e.fillTo || Io), e.pxAlign = +Y(e.pxAlign, h), e.pxRound = Vo(e.pxAlign), e.stroke = Z(e.stroke || null), e.fill = Z(e.fill || null), e._stroke = e._fill = e._paths = e._focus = null;
			let t = xo(ii(1, e.width), 1), n = e.points = Vi({}, {
				size: t,
				width: ii(1, t * .2),
				stroke: e.stroke,
				space: t * 2,
				paths: ps,
				_stroke: null,
				_fill: null
			}, e.points);
			n.show = Z(n.show), n.filter = Z(n.filter), n.fill = Z(n.fill), n.stroke = Z(n.stroke), n.paths = Z(n.paths), n.pxAlign = e.pxAlign;
		}
		if (N) {
			let n = ge(e, t);
			le.splice(t, 0, n[0]), ue.splice(t, 0, n[1]), j.values.push(null);
		}
		if (se) {
			oe.splice(t, 0, null);
			let n = null;
			qe ? t == 0 && (n = Ye(e, t)) : t > 0 && (n = Ye(e, t)), V.splice(t, 0, n), H.splice(t, 0, 0), Je.splice(t, 0, 0);
		}
		Xr("addSeries", t);
	}
	function Ze(e, t) {
		t ??= v.length, e = i == 1 ? gs(e, t, oo, Eo) : gs(e, t, {}, To), v.splice(t, 0, e), Xe(v[t], t);
	}
	r.addSeries = Ze;
	function Qe(e) {
		if (v.splice(e, 1), N) {
			j.values.splice(e, 1), ue.splice(e, 1);
			let t = le.splice(e, 1)[0];
			ye(null, t.firstChild), t.remove();
		}
		se && (oe.splice(e, 1), V.splice(e, 1)[0].remove(), H.splice(e, 1), Je.splice(e, 1)), Xr("delSeries", e);
	}
	r.delSeries = Qe;
	let $e = [
		!1,
		!1,
		!1,
		!1
	];
	function et(e, t) {
		if (e._show = e.show, e.show) {
			let n = e.side % 2, i = b[e.scale];
			i ??= (e.scale = n ? v[1].scale : S, b[e.scale]);
			let a = i.time;
			e.size = Z(e.size), e.space = Z(e.space), e.rotate = Z(e.rotate), Mi(e.incrs) && e.incrs.forEach((e) => {
				!Ei.has(e) && Ei.set(e, Di(e));
			}), e.incrs = Z(e.incrs || (i.distr == 2 ? fa : a ? _ == 1 ? Ta : Oa : pa)), e.splits = Z(e.splits || (a && i.distr == 1 ? re : i.distr == 3 ? lo : i.distr == 4 ? uo : co)), e.stroke = Z(e.stroke), e.grid.stroke = Z(e.grid.stroke), e.ticks.stroke = Z(e.ticks.stroke), e.border.stroke = Z(e.border.stroke);
			let o = e.values;
			e.values = Mi(o) && !Mi(o[0]) ? Z(o) : a ? Mi(o) ? Ma(te, ja(o, ne)) : Fi(o) ? Na(te, o) : o || ie : o || so, e.filter = Z(e.filter || (i.distr >= 3 && i.log == 10 ? _o : i.distr == 3 && i.log == 2 ? vo : _i)), e.font = Ts(e.font), e.labelFont = Ts(e.labelFont), e._size = e.size(r, null, t, 0), e._space = e._rotate = e._incrs = e._found = e._splits = e._values = null, e._size > 0 && ($e[t] = !0, e._el = Cr(In, f));
		}
	}
	function tt(e, t, n, r) {
		let [i, a, o, s] = n, c = t % 2, l = 0;
		return c == 0 && (s || a) && (l = t == 0 && !i || t == 2 && !o ? ti(ro.size / 3) : 0), c == 1 && (i || o) && (l = t == 1 && !a || t == 3 && !s ? ti(bo.size / 2) : 0), l;
	}
	let nt = r.padding = (e.padding || [
		tt,
		tt,
		tt,
		tt
	]).map((e) => Z(Y(e, tt))), rt = r._padding = nt.map((e, t) => e(r, t, $e, 0)), it, at = null, ot = null, st = i == 1 ? v[0].idxs : null, ct = null, lt = !1;
	function ut(e, n) {
		if (t = e ?? [], r.data = r._data = t, i == 2) {
			it = 0;
			for (let e = 1; e < v.length; e++) it += t[e][0].length;
		} else {
			t.length == 0 && (r.data = r._data = t = [[]]), ct = t[0], it = ct.length;
			let e = t;
			if (O == 2) {
				e = t.slice();
				let n = e[0] = Array(it);
				for (let e = 0; e < it; e++) n[e] = e;
			}
			r._data = t = e;
		}
		if (Bt(!0), Xr("setData"), O == 2 && (Pe = !0), n !== !1) {
			let e = D;
			e.auto(r, lt) ? dt() : fn(S, e.min, e.max), Fe ||= M.left >= 0, Le = !0, Gt();
		}
	}
	r.setData = ut;
	function dt() {
		lt = !0;
		let e, n;
		i == 1 && (it > 0 ? (at = st[0] = 0, ot = st[1] = it - 1, e = t[0][at], n = t[0][ot], O == 2 ? (e = at, n = ot) : e == n && (O == 3 ? [e, n] = Vr(e, e, D.log, !1) : O == 4 ? [e, n] = Hr(e, e, D.log, !1) : D.time ? n = e + ti(86400 / _) : [e, n] = qr(e, n, Ur, !0))) : (at = st[0] = e = null, ot = st[1] = n = null)), fn(S, e, n);
	}
	let ft, pt, mt, ht, gt, _t, vt, yt, bt, xt;
	function St(e, t, n, r, i, a) {
		e ??= nr, n ??= Ai, r ??= "butt", i ??= nr, a ??= "round", e != ft && (d.strokeStyle = ft = e), i != pt && (d.fillStyle = pt = i), t != mt && (d.lineWidth = mt = t), a != gt && (d.lineJoin = gt = a), r != _t && (d.lineCap = _t = r), n != ht && d.setLineDash(ht = n);
	}
	function Ct(e, t, n, r) {
		t != pt && (d.fillStyle = pt = t), e != vt && (d.font = vt = e), n != yt && (d.textAlign = yt = n), r != bt && (d.textBaseline = bt = r);
	}
	function wt(e, t, n, i, a = 0) {
		if (i.length > 0 && e.auto(r, lt) && (t == null || t.min == null)) {
			let t = Y(at, 0), r = Y(ot, i.length - 1), o = n.min == null ? Br(i, t, r, a, e.distr == 3) : [n.min, n.max];
			e.min = ri(e.min, n.min = o[0]), e.max = ii(e.max, n.max = o[1]);
		}
	}
	let Tt = {
		min: null,
		max: null
	};
	function Et() {
		for (let e in b) {
			let t = b[e];
			A[e] == null && (t.min == null || A[S] != null && t.auto(r, lt)) && (A[e] = Tt);
		}
		for (let e in b) {
			let t = b[e];
			A[e] == null && t.from != null && A[t.from] != null && (A[e] = Tt);
		}
		A[S] != null && Bt(!0);
		let e = {};
		for (let t in A) {
			let n = A[t];
			if (n != null) {
				let a = e[t] = Bi(b[t], Li);
				if (n.min != null) Vi(a, n);
				else if (t != S || i == 2) {
					if (it == 0 && a.from == null) {
						let e = a.range(r, null, null, t);
						a.min = e[0], a.max = e[1];
					} else a.min = di, a.max = -Infinity;
				}
			}
		}
		if (it > 0) {
			v.forEach((n, a) => {
				if (i == 1) {
					let i = n.scale, o = A[i];
					if (o == null) return;
					let s = e[i];
					if (a == 0) {
						let e = s.range(r, s.min, s.max, i);
						s.min = e[0], s.max = e[1], at = Pr(s.min, t[0]), ot = Pr(s.max, t[0]), ot - at > 1 && (t[0][at] < s.min && at++, t[0][ot] > s.max && ot--), n.min = ct[at], n.max = ct[ot];
					} else n.show && n.auto && wt(s, o, n, t[a], n.sorted);
					n.idxs[0] = at, n.idxs[1] = ot;
				} else if (a > 0 && n.show && n.auto) {
					let [r, i] = n.facets, o = r.scale, s = i.scale, [c, l] = t[a], u = e[o], d = e[s];
					u != null && wt(u, A[o], r, c, r.sorted), d != null && wt(d, A[s], i, l, i.sorted), n.min = i.min, n.max = i.max;
				}
			});
			for (let t in e) {
				let n = e[t], i = A[t];
				if (n.from == null && (i == null || i.min == null)) {
					let e = n.range(r, n.min == di ? null : n.min, n.max == -Infinity ? null : n.max, t);
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
				i._min = e == 3 ? si(i.min) : e == 4 ? ui(i.min, i.asinh) : e == 100 ? i.fwd(i.min) : i.min, i._max = e == 3 ? si(i.max) : e == 4 ? ui(i.max, i.asinh) : e == 100 ? i.fwd(i.max) : i.max, n[t] = a = !0;
			}
		}
		if (a) {
			v.forEach((e, t) => {
				i == 2 ? t > 0 && n.y && (e._paths = null) : n[e.scale] && (e._paths = null);
			});
			for (let e in n) Pe = !0, Xr("setScale", e);
			se && M.left >= 0 && (Fe = Le = !0);
		}
		for (let e in A) A[e] = null;
	}
	function Dt(e) {
		let t = pi(at - 1, 0, it - 1), n = pi(ot + 1, 0, it - 1);
		for (; e[t] == null && t > 0;) t--;
		for (; e[n] == null && n < it - 1;) n++;
		return [t, n];
	}
	function Ot() {
		if (it > 0) {
			let e = v.some((e) => e._focus) && xt != Ge.alpha;
			e && (d.globalAlpha = xt = Ge.alpha), v.forEach((e, n) => {
				if (n > 0 && e.show && (kt(n, !1), kt(n, !0), e._paths == null)) {
					let a = xt;
					xt != e.alpha && (d.globalAlpha = xt = e.alpha);
					let o = i == 2 ? [0, t[n][0].length - 1] : Dt(t[n]);
					e._paths = e.paths(r, n, o[0], o[1]), xt != a && (d.globalAlpha = xt = a);
				}
			}), v.forEach((e, t) => {
				if (t > 0 && e.show) {
					let n = xt;
					xt != e.alpha && (d.globalAlpha = xt = e.alpha), e._paths != null && At(t, !1);
					{
						let n = e._paths == null ? null : e._paths.gaps, i = e.points.show(r, t, at, ot, n), a = e.points.filter(r, t, i, n);
						(i || a) && (e.points._paths = e.points.paths(r, t, at, ot, a), At(t, !0));
					}
					xt != n && (d.globalAlpha = xt = n), Xr("drawSeries", t);
				}
			}), e && (d.globalAlpha = xt = 1);
		}
	}
	function kt(e, t) {
		let n = t ? v[e].points : v[e];
		n._stroke = n.stroke(r, e), n._fill = n.fill(r, e);
	}
	function At(e, t) {
		let n = t ? v[e].points : v[e], { stroke: r, fill: i, clip: a, flags: o, _stroke: s = n._stroke, _fill: c = n._fill, _width: l = n.width } = n._paths;
		l = Q(l * q, 3);
		let u = null, f = l % 2 / 2;
		t && c == null && (c = l > 0 ? "#fff" : s);
		let p = n.pxAlign == 1 && f > 0;
		if (p && d.translate(f, f), !t) {
			let e = Oe - l / 2, t = ke - l / 2, n = Ae + l, r = je + l;
			u = new Path2D(), u.rect(e, t, n, r);
		}
		t ? Mt(s, l, n.dash, n.cap, c, r, i, o, a) : jt(e, s, l, n.dash, n.cap, c, r, i, o, u, a), p && d.translate(-f, -f);
	}
	function jt(e, n, i, a, o, s, c, l, u, d, f) {
		let p = !1;
		u != 0 && x.forEach((m, h) => {
			if (m.series[0] == e) {
				let e = v[m.series[1]], g = t[m.series[1]], _ = (e._paths || ki).band;
				Mi(_) && (_ = m.dir == 1 ? _[0] : _[1]);
				let y, b = null;
				e.show && _ && Jr(g, at, ot) ? (b = m.fill(r, h) || s, y = e._paths.clip) : _ = null, Mt(n, i, a, o, b, c, l, u, d, f, y, _), p = !0;
			}
		}), p || Mt(n, i, a, o, s, c, l, u, d, f);
	}
	function Mt(e, t, n, r, i, a, o, s, c, l, u, f) {
		St(e, t, n, r, i), (c || l || f) && (d.save(), c && d.clip(c), l && d.clip(l)), f ? (s & 3) == 3 ? (d.clip(f), u && d.clip(u), Pt(i, o), Nt(e, a, t)) : s & No ? (Pt(i, o), d.clip(f), Nt(e, a, t)) : s & Mo && (d.save(), d.clip(f), u && d.clip(u), Pt(i, o), d.restore(), Nt(e, a, t)) : (Pt(i, o), Nt(e, a, t)), (c || l || f) && d.restore();
	}
	function Nt(e, t, n) {
		n > 0 && (t instanceof Map ? t.forEach((e, t) => {
			d.strokeStyle = ft = t, d.stroke(e);
		}) : t != null && e && d.stroke(t));
	}
	function Pt(e, t) {
		t instanceof Map ? t.forEach((e, t) => {
			d.fillStyle = pt = t, d.fill(e);
		}) : t != null && e && d.fill(t);
	}
	function Ft(e, t, n, i) {
		let a = y[e], o;
		if (i <= 0) o = [0, 0];
		else {
			let s = a._space = a.space(r, e, t, n, i);
			o = ws(t, n, a._incrs = a.incrs(r, e, t, n, i, s), i, s);
		}
		return a._found = o;
	}
	function It(e, t, n, r, i, a, o, s, c, l) {
		let u = o % 2 / 2;
		h == 1 && d.translate(u, u), St(s, o, c, l, s), d.beginPath();
		let f, p, m, g, _ = i + (r == 0 || r == 3 ? -a : a);
		n == 0 ? (p = i, g = _) : (f = i, m = _);
		for (let r = 0; r < e.length; r++) t[r] != null && (n == 0 ? f = m = e[r] : p = g = e[r], d.moveTo(f, p), d.lineTo(m, g));
		d.stroke(), h == 1 && d.translate(-u, -u);
	}
	function Lt(e) {
		let t = !0;
		return y.forEach((n, i) => {
			if (!n.show) return;
			let a = b[n.scale];
			if (a.min == null) {
				n._show && (t = !1, n._show = !1, Bt(!1));
				return;
			}
			n._show || (t = !1, n._show = !0, Bt(!1));
			let o = n.side, s = o % 2, { min: c, max: l } = a, [u, d] = Ft(i, c, l, s == 0 ? R : z);
			if (d == 0) return;
			let f = a.distr == 2, p = n._splits = n.splits(r, i, c, l, u, d, f), m = a.distr == 2 ? p.map((e) => ct[e]) : p, h = a.distr == 2 ? ct[p[1]] - ct[p[0]] : u, g = n._values = n.values(r, n.filter(r, m, i, d, h), i, d, h);
			n._rotate = o == 2 ? n.rotate(r, g, i, d) : 0;
			let _ = n._size;
			n._size = ni(n.size(r, g, i, e)), _ != null && n._size != _ && (t = !1);
		}), t;
	}
	function Rt(e) {
		let t = !0;
		return nt.forEach((n, i) => {
			let a = n(r, i, $e, e);
			a != rt[i] && (t = !1), rt[i] = a;
		}), t;
	}
	function zt() {
		for (let e = 0; e < y.length; e++) {
			let t = y[e];
			if (!t.show || !t._show) continue;
			let n = t.side, i = n % 2, a, o, c = t.stroke(r, e), l = n == 0 || n == 3 ? -1 : 1, [u, f] = t._found;
			if (t.label != null) {
				let s = t.labelGap * l, p = ti((t._lpos + s) * q);
				Ct(t.labelFont[0], c, "center", n == 2 ? Zn : Qn), d.save(), i == 1 ? (a = o = 0, d.translate(p, ti(ke + je / 2)), d.rotate((n == 3 ? -Qr : Qr) / 2)) : (a = ti(Oe + Ae / 2), o = p);
				let m = mi(t.label) ? t.label(r, e, u, f) : t.label;
				d.fillText(m, a, o), d.restore();
			}
			if (f == 0) continue;
			let p = b[t.scale], m = i == 0 ? Ae : je, h = i == 0 ? Oe : ke, _ = t._splits, v = p.distr == 2 ? _.map((e) => ct[e]) : _, x = p.distr == 2 ? ct[_[1]] - ct[_[0]] : u, S = t.ticks, C = t.border, w = S.show ? S.size : 0, T = ti(w * q), E = ti((t.alignTo == 2 ? t._size - w - t.gap : t.gap) * q), D = t._rotate * -Qr / 180, O = g(t._pos * q), k = O + (T + E) * l;
			o = i == 0 ? k : 0, a = i == 1 ? k : 0;
			let ee = t.font[0];
			Ct(ee, c, t.align == 1 ? $n : t.align == 2 ? er : D > 0 ? $n : D < 0 ? er : i == 0 ? "center" : n == 3 ? er : $n, D || i == 1 ? "middle" : n == 2 ? Zn : Qn);
			let A = t.font[1] * t.lineGap, te = _.map((e) => g(s(e, p, m, h))), ne = t._values;
			for (let e = 0; e < ne.length; e++) {
				let t = ne[e];
				if (t != null) {
					i == 0 ? a = te[e] : o = te[e], t = "" + t;
					let n = t.indexOf("\n") == -1 ? [t] : t.split(/\n/gm);
					for (let e = 0; e < n.length; e++) {
						let t = n[e];
						D ? (d.save(), d.translate(a, o + e * A), d.rotate(D), d.fillText(t, 0, 0), d.restore()) : d.fillText(t, a, o + e * A);
					}
				}
			}
			S.show && It(te, S.filter(r, v, e, f, x), i, n, O, T, Q(S.width * q, 3), S.stroke(r, e), S.dash, S.cap);
			let re = t.grid;
			re.show && It(te, re.filter(r, v, e, f, x), i, i == 0 ? 2 : 1, i == 0 ? ke : Oe, i == 0 ? je : Ae, Q(re.width * q, 3), re.stroke(r, e), re.dash, re.cap), C.show && It([O], [1], +(i == 0), i == 0 ? 1 : 2, i == 1 ? ke : Oe, i == 1 ? je : Ae, Q(C.width * q, 3), C.stroke(r, e), C.dash, C.cap);
		}
		Xr("drawAxes");
	}
	function Bt(e) {
		v.forEach((t, n) => {
			n > 0 && (t._paths = null, e && (i == 1 ? (t.min = null, t.max = null) : t.facets.forEach((e) => {
				e.min = null, e.max = null;
			})));
		});
	}
	let Vt = !1, Ht = !1, Ut = [];
	function Wt() {
		Ht = !1;
		for (let e = 0; e < Ut.length; e++) Xr(...Ut[e]);
		Ut.length = 0;
	}
	function Gt() {
		Vt ||= (qi(qt), !0);
	}
	function Kt(e, t = !1) {
		Vt = !0, Ht = t, e(r), qt(), t && Ut.length > 0 && queueMicrotask(Wt);
	}
	r.batch = Kt;
	function qt() {
		if (Me &&= (Et(), !1), Pe &&= (ze(), !1), Ne) {
			if (J(p, $n, Se), J(p, Zn, Ce), J(p, Yn, R), J(p, Xn, z), J(m, $n, Se), J(m, Zn, Ce), J(m, Yn, R), J(m, Xn, z), J(f, Yn, be), J(f, Xn, xe), u.width = ti(be * q), u.height = ti(xe * q), y.forEach(({ _el: e, _show: t, _size: n, _pos: r, side: i }) => {
				if (e != null) {
					if (t) {
						let t = i === 3 || i === 0 ? n : 0, a = i % 2 == 1;
						J(e, a ? "left" : "top", r - t), J(e, a ? "width" : "height", n), J(e, a ? "top" : "left", a ? Ce : Se), J(e, a ? "height" : "width", a ? z : R), xr(e, Ln);
					} else br(e, Ln);
				}
			}), ft = pt = mt = gt = _t = vt = yt = bt = ht = null, xt = 1, _r(!0), Se != we || Ce != Te || R != Ee || z != De) {
				Bt(!1);
				let e = R / Ee, t = z / De;
				if (se && !Fe && M.left >= 0) {
					M.left *= e, M.top *= t, Zt && Tr(Zt, ti(M.left), 0, R, z), Qt && Tr(Qt, 0, ti(M.top), R, z);
					for (let n = 0; n < V.length; n++) {
						let r = V[n];
						r != null && (H[n] *= e, Je[n] *= t, Tr(r, ni(H[n]), ni(Je[n]), R, z));
					}
				}
				if (K.show && !Ie && K.left >= 0 && K.width > 0) {
					K.left *= e, K.width *= e, K.top *= t, K.height *= t;
					for (let e in wr) J(ln, e, K[e]);
				}
				we = Se, Te = Ce, Ee = R, De = z;
			}
			Xr("setSize"), Ne = !1;
		}
		be > 0 && xe > 0 && (d.clearRect(0, 0, u.width, u.height), Xr("drawClear"), w.forEach((e) => e()), Xr("draw")), K.show && Ie && (un(K), Ie = !1), se && Fe && (dr(null, !0, !1), Fe = !1), j.show && j.live && Le && (lr(), Le = !1), c || (c = !0, r.status = 1, Xr("ready")), lt = !1, Vt = !1;
	}
	r.redraw = (e, t) => {
		Pe = t || !1, e === !1 ? Gt() : fn(S, D.min, D.max);
	};
	function Jt(e, n) {
		let i = b[e];
		if (i.from == null) {
			if (it == 0) {
				let t = i.range(r, n.min, n.max, e);
				n.min = t[0], n.max = t[1];
			}
			if (n.min > n.max) {
				let e = n.min;
				n.min = n.max, n.max = e;
			}
			if (it > 1 && n.min != null && n.max != null && n.max - n.min < 1e-16) return;
			e == S && i.distr == 2 && it > 0 && (n.min = Pr(n.min, t[0]), n.max = Pr(n.max, t[0]), n.min == n.max && n.max++), A[e] = n, Me = !0, Gt();
		}
	}
	r.setScale = Jt;
	let Yt, Xt, Zt, Qt, $t, en, tn, nn, rn, an, U, W, on = !1, sn = M.drag, cn = sn.x, G = sn.y;
	se && (M.x && (Yt = Cr(zn, m)), M.y && (Xt = Cr(Bn, m)), D.ori == 0 ? (Zt = Yt, Qt = Xt) : (Zt = Xt, Qt = Yt), U = M.left, W = M.top);
	let K = r.select = Vi({
		show: !0,
		over: !0,
		left: 0,
		width: 0,
		top: 0,
		height: 0
	}, e.select), ln = K.show ? Cr(Rn, K.over ? m : p) : null;
	function un(e, t) {
		if (K.show) {
			for (let t in e) K[t] = e[t], t in wr && J(ln, t, e[t]);
			t !== !1 && Xr("setSelect");
		}
	}
	r.setSelect = un;
	function dn(e) {
		if (v[e].show) N && xr(le[e], Ln);
		else if (N && br(le[e], Ln), se) {
			let t = qe ? V[0] : V[e];
			t != null && Tr(t, -10, -10, R, z);
		}
	}
	function fn(e, t, n) {
		Jt(e, {
			min: t,
			max: n
		});
	}
	function pn(e, t, n, a) {
		t.focus != null && Sn(e), t.show != null && v.forEach((n, r) => {
			r > 0 && (e == r || e == null) && (n.show = t.show, dn(r), i == 2 ? (fn(n.facets[0].scale, null, null), fn(n.facets[1].scale, null, null)) : fn(n.scale, null, null), Gt());
		}), n !== !1 && Xr("setSeries", e, t), a && ci("setSeries", r, e, t);
	}
	r.setSeries = pn;
	function mn(e, t) {
		Vi(x[e], t);
	}
	function hn(e, t) {
		e.fill = Z(e.fill || null), e.dir = Y(e.dir, -1), t ??= x.length, x.splice(t, 0, e);
	}
	function gn(e) {
		e == null ? x.length = 0 : x.splice(e, 1);
	}
	r.addBand = hn, r.setBand = mn, r.delBand = gn;
	function _n(e, t) {
		v[e].alpha = t, se && V[e] != null && (V[e].style.opacity = t), N && le[e] && (le[e].style.opacity = t);
	}
	let vn, yn, bn, xn = { focus: !0 };
	function Sn(e) {
		if (e != bn) {
			let t = e == null, n = Ge.alpha != 1;
			v.forEach((r, a) => {
				if (i == 1 || a > 0) {
					let i = t || a == 0 || a == e;
					r._focus = t ? null : i, n && _n(a, i ? 1 : Ge.alpha);
				}
			}), bn = e, n && Gt();
		}
	}
	N && Ke && ve(sr, F, (e) => {
		M._lock || (Ue(e), bn != null && pn(null, xn, !0, X.setSeries));
	});
	function Cn(e, t, n) {
		let r = b[t];
		n && (e = e / q - (r.ori == 1 ? Ce : Se));
		let i = R;
		r.ori == 1 && (i = z, e = i - e), r.dir == -1 && (e = i - e);
		let a = r._min, o = r._max, s = e / i, c = a + (o - a) * s, l = r.distr;
		return l == 3 ? ai(10, c) : l == 4 ? li(c, r.asinh) : l == 100 ? r.bwd(c) : c;
	}
	function wn(e, n) {
		return Pr(Cn(e, S, n), t[0], at, ot);
	}
	r.valToIdx = (e) => Pr(e, t[0]), r.posToIdx = wn, r.posToVal = Cn, r.valToPos = (e, t, n) => b[t].ori == 0 ? a(e, b[t], n ? Ae : R, n ? Oe : 0) : o(e, b[t], n ? je : z, n ? ke : 0), r.setCursor = (e, t, n) => {
		U = e.left, W = e.top, dr(null, t, n);
	};
	function Tn(e, t) {
		J(ln, $n, K.left = e), J(ln, Yn, K.width = t);
	}
	function En(e, t) {
		J(ln, Zn, K.top = e), J(ln, Xn, K.height = t);
	}
	let Dn = D.ori == 0 ? Tn : En, On = D.ori == 1 ? Tn : En;
	function tr() {
		if (N && j.live) for (let e = +(i == 2); e < v.length; e++) {
			if (e == 0 && fe) continue;
			let t = j.values[e], n = 0;
			for (let r in t) ue[e][n++].firstChild.nodeValue = t[r];
		}
	}
	function lr(e, t) {
		if (e != null && (e.idxs ? e.idxs.forEach((e, t) => {
			oe[t] = e;
		}) : Pi(e.idx) || oe.fill(e.idx), j.idx = oe[0]), N && j.live) {
			for (let e = 0; e < v.length; e++) (e > 0 || i == 1 && !fe) && ur(e, oe[e]);
			tr();
		}
		Le = !1, t !== !1 && Xr("setLegend");
	}
	r.setLegend = lr;
	function ur(e, n) {
		let i = v[e], a = e == 0 && O == 2 ? ct : t[e], o;
		fe ? o = i.values(r, e, n) ?? pe : (o = i.value(r, n == null ? null : a[n], e, n), o = o == null ? pe : { _: o }), j.values[e] = o;
	}
	function dr(e, n, a) {
		rn = U, an = W, [U, W] = M.move(r, U, W), M.left = U, M.top = W, se && (Zt && Tr(Zt, ti(U), 0, R, z), Qt && Tr(Qt, 0, ti(W), R, z));
		let o, s = at > ot;
		vn = di, yn = null;
		let c = D.ori == 0 ? R : z, l = D.ori == 1 ? R : z;
		if (U < 0 || it == 0 || s) {
			o = M.idx = null;
			for (let e = 0; e < v.length; e++) {
				let t = V[e];
				t != null && Tr(t, -10, -10, R, z);
			}
			Ke && pn(null, xn, !0, e == null && X.setSeries), j.live && (oe.fill(o), Le = !0);
		} else {
			let e, n, a;
			i == 1 && (e = D.ori == 0 ? U : W, n = Cn(e, S), o = M.idx = Pr(n, t[0], at, ot), a = k(t[0][o], D, c, 0));
			let s = -10, u = -10, d = 0, f = 0, p = !0, m = "", h = "";
			for (let e = +(i == 2); e < v.length; e++) {
				let g = v[e], _ = oe[e], y = _ == null ? null : i == 1 ? t[e][_] : t[e][1][_], x = M.dataIdx(r, e, o, n), S = x == null ? null : i == 1 ? t[e][x] : t[e][1][x];
				if (Le = Le || S != y || x != _, oe[e] = x, e > 0 && g.show) {
					let n = x == null ? -10 : x == o ? a : k(i == 1 ? t[0][x] : t[e][0][x], D, c, 0), _ = S == null ? -10 : ee(S, i == 1 ? b[g.scale] : b[g.facets[1].scale], l, 0);
					if (Ke && S != null) {
						let t = D.ori == 1 ? U : W, n = $r(Ge.dist(r, e, x, _, t));
						if (n < vn) {
							let r = Ge.bias;
							if (r != 0) {
								let i = Cn(t, g.scale), a = S >= 0 ? 1 : -1, o = i >= 0 ? 1 : -1;
								o == a && (o == 1 ? r == 1 ? S >= i : S <= i : r == 1 ? S <= i : S >= i) && (vn = n, yn = e);
							} else vn = n, yn = e;
						}
					}
					if (Le || qe) {
						let t, i;
						D.ori == 0 ? (t = n, i = _) : (t = _, i = n);
						let a, o, c, l, g, v, y = !0, b = We.bbox;
						if (b != null) {
							y = !1;
							let t = b(r, e);
							c = t.left, l = t.top, a = t.width, o = t.height;
						} else c = t, l = i, a = o = We.size(r, e);
						if (v = We.fill(r, e), g = We.stroke(r, e), qe) e == yn && vn <= Ge.prox && (s = c, u = l, d = a, f = o, p = y, m = v, h = g);
						else {
							let t = V[e];
							t != null && (H[e] = c, Je[e] = l, kr(t, a, o, y), Dr(t, v, g), Tr(t, ni(c), ni(l), R, z));
						}
					}
				}
			}
			if (qe) {
				let e = Ge.prox;
				if (Le || (bn == null ? vn <= e : vn > e || yn != bn)) {
					let e = V[0];
					e != null && (H[0] = s, Je[0] = u, kr(e, d, f, p), Dr(e, m, h), Tr(e, ni(s), ni(u), R, z));
				}
			}
		}
		if (K.show && on) {
			if (e != null) {
				let [t, n] = X.scales, [r, i] = X.match, [a, o] = e.cursor.sync.scales, s = e.cursor.drag;
				if (cn = s._x, G = s._y, cn || G) {
					let { left: s, top: u, width: d, height: f } = e.select, p = e.scales[a].ori, m = e.posToVal, h, g, _, v, y, x = t != null && r(t, a), S = n != null && i(n, o);
					x && cn ? (p == 0 ? (h = s, g = d) : (h = u, g = f), _ = b[t], v = k(m(h, a), _, c, 0), y = k(m(h + g, a), _, c, 0), Dn(ri(v, y), $r(y - v))) : Dn(0, c), S && G ? (p == 1 ? (h = s, g = d) : (h = u, g = f), _ = b[n], v = ee(m(h, o), _, l, 0), y = ee(m(h + g, o), _, l, 0), On(ri(v, y), $r(y - v))) : On(0, l);
				} else Er();
			} else {
				let e = $r(rn - $t), t = $r(an - en);
				if (D.ori == 1) {
					let n = e;
					e = t, t = n;
				}
				cn = sn.x && e >= sn.dist, G = sn.y && t >= sn.dist;
				let n = sn.uni;
				n == null ? sn.x && sn.y && (cn || G) && (cn = G = !0) : cn && G && (cn = e >= n, G = t >= n, !cn && !G && (t > e ? G = !0 : cn = !0));
				let r, i;
				cn && (D.ori == 0 ? (r = tn, i = U) : (r = nn, i = W), Dn(ri(r, i), $r(i - r)), G || On(0, l)), G && (D.ori == 1 ? (r = tn, i = U) : (r = nn, i = W), On(ri(r, i), $r(i - r)), cn || Dn(0, c)), !cn && !G && (Dn(0, 0), On(0, 0));
			}
		}
		if (sn._x = cn, sn._y = G, e == null) {
			if (a) {
				if (ei != null) {
					let [e, t] = X.scales;
					X.values[0] = e == null ? null : Cn(D.ori == 0 ? U : W, e), X.values[1] = t == null ? null : Cn(D.ori == 1 ? U : W, t);
				}
				ci(rr, r, U, W, R, z, o);
			}
			if (Ke) {
				let e = a && X.setSeries, t = Ge.prox;
				bn == null ? vn <= t && pn(yn, xn, !0, e) : vn > t ? pn(null, xn, !0, e) : yn != bn && pn(yn, xn, !0, e);
			}
		}
		Le && (j.idx = o, lr()), n !== !1 && Xr("setCursor");
	}
	let mr = null;
	Object.defineProperty(r, "rect", { get() {
		return mr ?? _r(!1), mr;
	} });
	function _r(e = !1) {
		e ? mr = null : (mr = m.getBoundingClientRect(), Xr("syncRect", mr));
	}
	function vr(e, t, n, r, i, a, o) {
		M._lock || on && e != null && e.movementX == 0 && e.movementY == 0 || (yr(e, t, n, r, i, a, o, !1, e != null), e == null ? dr(t, !0, !1) : dr(null, !0, !0));
	}
	function yr(e, t, n, i, a, o, c, l, u) {
		if (mr ?? _r(!1), Ue(e), e != null) n = e.clientX - mr.left, i = e.clientY - mr.top;
		else {
			if (n < 0 || i < 0) {
				U = -10, W = -10;
				return;
			}
			let [e, r] = X.scales, c = t.cursor.sync, [l, u] = c.values, [d, f] = c.scales, [p, m] = X.match, h = t.axes[0].side % 2 == 1, g = D.ori == 0 ? R : z, _ = D.ori == 1 ? R : z, v = h ? o : a, y = h ? a : o, x = h ? i : n, S = h ? n : i;
			if (n = d == null ? x / v * g : p(e, d) ? s(l, b[e], g, 0) : -10, i = f == null ? S / y * _ : m(r, f) ? s(u, b[r], _, 0) : -10, D.ori == 1) {
				let e = n;
				n = i, i = e;
			}
		}
		u && (t == null || t.cursor.event.type == rr) && ((n <= 1 || n >= R - 1) && (n = Ci(n, R)), (i <= 1 || i >= z - 1) && (i = Ci(i, z))), l ? ($t = n, en = i, [tn, nn] = M.move(r, n, i)) : (U = n, W = i);
	}
	let wr = {
		width: 0,
		height: 0,
		left: 0,
		top: 0
	};
	function Er() {
		un(wr, !1);
	}
	let Or, Ar, jr, Fr;
	function Ir(e, t, n, i, a, o, s) {
		on = !0, cn = G = sn._x = sn._y = !1, yr(e, t, n, i, a, o, s, !0, !1), e != null && (ve(ar, hr, Lr, !1), ci(ir, r, tn, nn, R, z, null));
		let { left: c, top: l, width: u, height: d } = K;
		Or = c, Ar = l, jr = u, Fr = d;
	}
	function Lr(e, t, n, i, a, o, s) {
		on = sn._x = sn._y = !1, yr(e, t, n, i, a, o, s, !1, !0);
		let { left: c, top: l, width: u, height: d } = K, f = u > 0 || d > 0, p = Or != c || Ar != l || jr != u || Fr != d;
		if (f && p && un(K), sn.setScale && f && p) {
			let e = c, t = u, n = l, r = d;
			if (D.ori == 1 && (e = l, t = d, n = c, r = u), cn && fn(S, Cn(e, S), Cn(e + t, S)), G) for (let e in b) {
				let t = b[e];
				e != S && t.from == null && t.min != di && fn(e, Cn(n + r, e), Cn(n, e));
			}
			Er();
		} else M.lock && (M._lock = !M._lock, dr(t, !0, e != null));
		e != null && (ye(ar, hr), ci(ar, r, U, W, R, z, null));
	}
	function Rr(e, t, n, r, i, a, o) {
		if (M._lock) return;
		Ue(e);
		let s = on;
		if (on) {
			let e = !0, t = !0, n, r;
			D.ori == 0 ? (n = cn, r = G) : (n = G, r = cn), n && r && (e = U <= 10 || U >= R - 10, t = W <= 10 || W >= z - 10), n && e && (U = U < tn ? 0 : R), r && t && (W = W < nn ? 0 : z), dr(null, !0, !0), on = !1;
		}
		U = -10, W = -10, oe.fill(null), dr(null, !0, !0), s && (on = s);
	}
	function zr(e, t, n, i, a, o, s) {
		M._lock || (Ue(e), dt(), Er(), e != null && ci(cr, r, U, W, R, z, null));
	}
	function Gr() {
		y.forEach(Es), Re(r.width, r.height, !0);
	}
	Mr(fr, gr, Gr);
	let Kr = {};
	Kr.mousedown = Ir, Kr.mousemove = vr, Kr.mouseup = Lr, Kr.dblclick = zr, Kr.setSeries = (e, t, n, i) => {
		let a = X.match[2];
		n = a(r, t, n), n != -1 && pn(n, i, !0, !1);
	}, se && (ve(ir, m, Ir), ve(rr, m, vr), ve(or, m, (e) => {
		Ue(e), _r(!1);
	}), ve(sr, m, Rr), ve(cr, m, zr), us.add(r), r.syncRect = _r);
	let Yr = r.hooks = e.hooks || {};
	function Xr(e, t, n) {
		Ht ? Ut.push([
			e,
			t,
			n
		]) : e in Yr && Yr[e].forEach((e) => {
			e.call(null, r, t, n);
		});
	}
	(e.plugins || []).forEach((e) => {
		for (let t in e.hooks) Yr[t] = (Yr[t] || []).concat(e.hooks[t]);
	});
	let Zr = (e, t, n) => n, X = Vi({
		key: null,
		setSeries: !1,
		filters: {
			pub: yi,
			sub: yi
		},
		scales: [S, v[1] ? v[1].scale : null],
		match: [
			bi,
			bi,
			Zr
		],
		values: [null, null]
	}, M.sync);
	X.match.length == 2 && X.match.push(Zr), M.sync = X;
	let ei = X.key, oi = jo(ei);
	function ci(e, t, n, r, i, a, o) {
		X.filters.pub(e, t, n, r, i, a, o) && oi.pub(e, t, n, r, i, a, o);
	}
	oi.sub(r);
	function fi(e, t, n, r, i, a, o) {
		X.filters.sub(e, t, n, r, i, a, o) && Kr[e](null, t, n, r, i, a, o);
	}
	r.pub = fi;
	function hi() {
		oi.unsub(r), us.delete(r), _e.clear(), Nr(fr, gr, Gr), l.remove(), F?.remove(), Xr("destroy");
	}
	r.destroy = hi;
	function gi() {
		Xr("init", e, t), ut(t || e.data, !1), A[S] ? Jt(S, A[S]) : dt(), Ie = K.show && (K.width > 0 || K.height > 0), Fe = Le = !0, Re(e.width, e.height);
	}
	return v.forEach(Xe), y.forEach(et), n ? n instanceof HTMLElement ? (n.appendChild(l), gi()) : n(r, gi) : gi(), r;
}
Ds.assign = Vi, Ds.fmtNum = Zr, Ds.rangeNum = qr, Ds.rangeLog = Vr, Ds.rangeAsinh = Hr, Ds.orient = Po, Ds.pxRatio = q, Ds.join = Ki, Ds.fmtDate = aa, Ds.tzDate = sa, Ds.sync = jo;
{
	Ds.addGap = zo, Ds.clipGaps = Ro;
	let e = Ds.paths = { points: $o };
	e.linear = rs, e.stepped = is, e.bars = os, e.spline = cs;
}
// src/state/theme.ts
var Os = "warp.theme", ks = (e) => globalThis.matchMedia?.(e) ?? null, As = ks("(prefers-color-scheme: dark)"), js = ks("(prefers-reduced-motion: reduce)"), Ms = H(As?.matches ?? !1), Ns = H(js?.matches ?? !1);
As?.addEventListener("change", (e) => Ms.value = e.matches), js?.addEventListener("change", (e) => Ns.value = e.matches);
function Ps() {
	try {
		let e = globalThis.localStorage?.getItem(Os);
		return e === "light" || e === "dark" ? e : "system";
	} catch {
		return "system";
	}
}
var Fs = H(Ps()), Is = Qe(() => Fs.value === "system" ? Ms.value : Fs.value === "dark"), Ls = Qe(() => !Ns.value);
// src/curves/Plot.tsx
function Rs(e, t) {
	return getComputedStyle(e).getPropertyValue(t).trim();
}
function zs(e) {
	let t = we(null), n = we(null), r = we(e);
	r.current = e;
	let i = e.height ?? 260;
	return Ce(() => {
		let a = t.current;
		if (a === null) return;
		let o = Rs(a, "--ink"), s = Rs(a, "--muted"), c = Rs(a, "--line"), l = `12px ${Rs(a, "--sans") || "system-ui, sans-serif"}`, u = {
			stroke: s,
			font: l,
			grid: {
				stroke: c,
				width: 1
			},
			ticks: { show: !1 },
			labelFont: l,
			labelSize: 20,
			labelGap: 0
		}, d = new Ds({
			width: Math.max(200, a.clientWidth),
			height: i,
			padding: [
				12,
				12,
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
				y: { range: (e, t, n) => [Math.min(r.current.least, t ?? r.current.least), Math.max(r.current.least + .1, (n ?? 1) * 1.04)] }
			},
			axes: [{
				...u,
				size: 34,
				label: e.xLabel,
				grid: { show: !1 }
			}, {
				...u,
				size: 48,
				label: e.yLabel
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
				...e.bars === !0 ? { paths: Ds.paths.bars?.({ size: [.9] }) } : {},
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
		n.current = d;
		let f = new ResizeObserver(() => {
			a.clientWidth > 0 && a.clientWidth !== d.width && d.setSize({
				width: a.clientWidth,
				height: i
			});
		});
		return f.observe(a), () => {
			f.disconnect(), d.destroy(), n.current = null;
		};
	}, [JSON.stringify([
		e.lines,
		Is.value,
		e.xLabel,
		e.yLabel,
		e.bars
	]), i]), Se(() => {
		let t = n.current;
		if (t === null || (t.setData(e.data), (t.cursor.left ?? -1) >= 0 || (e.data[0]?.length ?? 0) === 0)) return;
		let r = e.data.map((e) => {
			let t = e.length - 1;
			for (; t > 0 && (e[t] === null || e[t] === void 0);) --t;
			return t;
		});
		t.setLegend({ idxs: r });
	}, [e.data, e.xEnd]), /* @__PURE__ */ G("div", {
		class: "plot",
		ref: t,
		role: "img",
		"aria-label": e.label,
		style: { minHeight: `${i + 30}px` }
	});
}
// src/curves/Curves.tsx
var Bs = [
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
];
function Vs({ session: e }) {
	let t = ft("waf"), n = ft(0), r = ft("0.1");
	e.told.value;
	let i = e.lanes.value, a = i[Math.min(n.value, i.length - 1)];
	return a === void 0 ? null : /* @__PURE__ */ G("section", {
		class: "curves",
		"data-tour": "curves",
		"aria-label": "Curves",
		children: [
			/* @__PURE__ */ G("div", {
				class: "bar",
				children: [
					/* @__PURE__ */ G("h2", { children: "Curves" }),
					/* @__PURE__ */ G(un, {
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
					(t.value === "waf" || t.value === "handles") && /* @__PURE__ */ G("label", {
						class: "inline",
						children: ["over", /* @__PURE__ */ G("select", {
							value: r.value,
							onChange: (e) => r.value = e.currentTarget.value,
							children: [
								/* @__PURE__ */ G("option", {
									value: "0.02",
									children: "the last 0.02 drive-writes"
								}),
								/* @__PURE__ */ G("option", {
									value: "0.1",
									children: "the last 0.1 drive-writes"
								}),
								/* @__PURE__ */ G("option", {
									value: "1",
									children: "the last drive-write"
								}),
								/* @__PURE__ */ G("option", {
									value: "all",
									children: "everything so far"
								})
							]
						})]
					}),
					t.value !== "waf" && /* @__PURE__ */ G(dn, {
						lanes: i,
						value: n
					})
				]
			}),
			t.value === "waf" && /* @__PURE__ */ G(Ws, {
				session: e,
				window: r.value
			}),
			t.value === "handles" && /* @__PURE__ */ G(Gs, {
				session: e,
				state: a,
				window: r.value
			}),
			t.value === "time" && /* @__PURE__ */ G(Ks, { state: a }),
			t.value === "wear" && /* @__PURE__ */ G(qs, {
				session: e,
				state: a
			})
		]
	});
}
function Hs(e, t, n) {
	let r = t.lane.capacity_bytes;
	return n === "all" ? Sn(e, r) : Cn(e, r, Number(n) * r);
}
var Us = "Nothing was written yet. Press play, or step by a few requests.";
function Ws({ session: e, window: t, height: n }) {
	e.told.value;
	let r = e.lanes.value, { x: i, ys: a } = Dn(r.map((e) => Hs(wn(e), e, t))), o = r.map((e, t) => ({
		label: `${r.length > 1 ? `${K(t)} ` : ""}${e.lane.name}`,
		...Bs[t % Bs.length]
	})), s = r[0];
	if (s === void 0) return null;
	let c = e.order.value?.forks ?? [];
	return /* @__PURE__ */ G("figure", { children: [/* @__PURE__ */ G(zs, {
		lines: o,
		data: [i, ...a],
		xLabel: "drive-writes",
		yLabel: "WAF",
		least: 1,
		value: gn,
		xValue: yn,
		xEnd: e.endBytes / s.lane.capacity_bytes,
		marks: c.map((e) => ({
			x: e.at_host_bytes / s.lane.capacity_bytes,
			label: e.name
		})),
		label: `Write amplification over drive-writes: ${r.map((e) => `${e.lane.name} ${gn(e.waf)}`).join(", ")}`,
		...n === void 0 ? {} : { height: n }
	}), i.length === 0 && /* @__PURE__ */ G("figcaption", {
		class: "empty",
		children: Us
	})] });
}
function Gs({ session: e, state: t, window: n }) {
	e.told.value;
	let r = kt(t.lane.owners, on(t)), i = t.lane.owners.map((e, t) => ({
		owner: e,
		index: t
	})).filter(({ index: e, owner: n }) => n.isolation !== null && (t.owners[e]?.hostBytes ?? 0) > 0), { x: a, ys: o } = Dn(i.map(({ index: e }) => Hs(Tn(t, e), t, n)));
	return /* @__PURE__ */ G("figure", { children: [/* @__PURE__ */ G(zs, {
		lines: i.map(({ owner: e, index: t }) => ({
			label: e.name,
			colour: r[t] ?? "ink"
		})),
		data: [a, ...o],
		xLabel: "drive-writes",
		yLabel: "own WAF",
		least: 1,
		value: gn,
		xValue: yn,
		label: "Write amplification of each handle"
	}), /* @__PURE__ */ G("figcaption", {
		class: i.length === 0 ? "empty" : "",
		children: i.length === 0 ? Us : "A handle's own WAF: what the host wrote through it and what was copied out of its units, over what the host wrote. Copies out of the shared pool are nobody's."
	})] });
}
function Ks({ state: e }) {
	let t = e.latency;
	if (!e.lane.timed) return /* @__PURE__ */ G("p", {
		class: "empty",
		children: [
			"This lane runs without a clock: its drive does everything at once, so it has no latency. Choose a device with times (",
			"ssd_a",
			", ",
			"ssd_b",
			", ",
			"pm9d3a",
			") and “in virtual time” at the start."
		]
	});
	if (t === null) return /* @__PURE__ */ G("p", {
		class: "empty",
		children: "No latencies yet: they come while it runs, and for good when it has ended."
	});
	let { series: n } = t;
	return /* @__PURE__ */ G(x, { children: [n !== void 0 && n.seconds.length > 1 && /* @__PURE__ */ G(zs, {
		lines: [{
			label: "hosts",
			colour: "ink"
		}, ...n.collection_bytes_per_second === void 0 ? [] : [{
			label: "garbage collection",
			colour: "#D55E00",
			dash: [5, 3]
		}]],
		data: [
			n.seconds,
			n.host_bytes_per_second.map((e) => e / 1e6),
			...n.collection_bytes_per_second === void 0 ? [] : [n.collection_bytes_per_second.map((e) => e / 1e6)]
		],
		xLabel: "seconds of virtual time",
		yLabel: "MB/s",
		least: 0,
		height: 200,
		value: (e) => e === null ? "–" : hn(e * 1e6),
		xValue: (e) => `${e.toFixed(2)} s`,
		label: "Bandwidth over virtual time"
	}), /* @__PURE__ */ G("div", {
		class: "scroll",
		children: /* @__PURE__ */ G("table", {
			class: "numbers",
			children: [/* @__PURE__ */ G("thead", { children: /* @__PURE__ */ G("tr", { children: [
				/* @__PURE__ */ G("th", {
					scope: "col",
					children: "job"
				}),
				/* @__PURE__ */ G("th", {
					scope: "col",
					children: "IOPS"
				}),
				/* @__PURE__ */ G("th", {
					scope: "col",
					children: "bandwidth"
				}),
				/* @__PURE__ */ G("th", {
					scope: "col",
					children: "mean"
				}),
				/* @__PURE__ */ G("th", {
					scope: "col",
					children: "p50"
				}),
				/* @__PURE__ */ G("th", {
					scope: "col",
					children: "p99"
				}),
				/* @__PURE__ */ G("th", {
					scope: "col",
					children: "p99.9"
				}),
				/* @__PURE__ */ G("th", {
					scope: "col",
					children: "p99.99"
				}),
				/* @__PURE__ */ G("th", {
					scope: "col",
					children: "waited for GC"
				})
			] }) }), /* @__PURE__ */ G("tbody", { children: t.jobs.map((e) => /* @__PURE__ */ G("tr", { children: [
				/* @__PURE__ */ G("th", {
					scope: "row",
					children: [
						e.name,
						", ",
						e.direction
					]
				}),
				/* @__PURE__ */ G("td", { children: xn(e.iops) }),
				/* @__PURE__ */ G("td", { children: hn(e.bytes_per_second) }),
				/* @__PURE__ */ G("td", { children: bn(e.mean_ns) }),
				/* @__PURE__ */ G("td", { children: bn(e.p50_ns) }),
				/* @__PURE__ */ G("td", { children: bn(e.p99_ns) }),
				/* @__PURE__ */ G("td", { children: bn(e.p999_ns) }),
				/* @__PURE__ */ G("td", { children: bn(e.p9999_ns) }),
				/* @__PURE__ */ G("td", { children: _n(e.waited_share) })
			] }, `${e.name} ${e.direction}`)) })]
		})
	})] });
}
function qs({ session: e, state: t }) {
	let n = e.hosts.value, r = t.result?.block_erases ?? n?.wear ?? null, i = n?.histogram, a = t.owners.reduce((e, t) => e + t.reclaimed, 0);
	return /* @__PURE__ */ G(x, { children: [i !== void 0 && i.length > 1 && /* @__PURE__ */ G(zs, {
		lines: [{
			label: "blocks",
			colour: "ink",
			fill: "#8886"
		}],
		bars: !0,
		data: [i.map((e, t) => t), i],
		xLabel: "erases",
		yLabel: "blocks",
		least: 0,
		height: 200,
		value: (e) => e === null ? "–" : xn(e),
		xValue: String,
		label: "Blocks by how often they were erased"
	}), /* @__PURE__ */ G("dl", {
		class: "facts",
		children: [
			/* @__PURE__ */ G("div", { children: [/* @__PURE__ */ G("dt", { children: "reclaim units erased" }), /* @__PURE__ */ G("dd", { children: xn(a) })] }),
			/* @__PURE__ */ G("div", { children: [/* @__PURE__ */ G("dt", { children: "times each, on average" }), /* @__PURE__ */ G("dd", { children: (a / Math.max(1, t.lane.superblocks)).toFixed(2) })] }),
			/* @__PURE__ */ G("div", { children: [/* @__PURE__ */ G("dt", { children: "flash written" }), /* @__PURE__ */ G("dd", { children: pn(t.mediaBytes) })] }),
			r !== null && /* @__PURE__ */ G("div", { children: [/* @__PURE__ */ G("dt", { children: "erases of a block: fewest, mean, most" }), /* @__PURE__ */ G("dd", { children: [
				r.fewest,
				", ",
				r.mean.toFixed(1),
				", ",
				r.most
			] })] })
		]
	})] });
}
// src/state/knobs.ts
var Js = (...e) => e.map((e) => ({
	label: `${Math.round(e * 100)} %`,
	value: e
})), Ys = (...e) => e.map((e) => ({
	label: e.replaceAll("_", " "),
	value: e
})), Xs = [
	{
		path: "geometry.over_provisioning",
		label: "over-provisioning",
		values: Js(.07, .1, .15, .2, .28, .4),
		hint: "a share of the capacity: 0.28"
	},
	{
		path: "gc.unit_selection",
		label: "unit selection",
		values: [
			...Ys("greedy", "cost_age", "benefit_cost", "benefit_cost_since_invalidation", "fifo", "random"),
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
		values: Ys("initially_isolated", "persistently_isolated", "adaptive"),
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
		hint: "a size of the full drive: 256MiB"
	},
	{
		path: "gc.handle_selection",
		label: "whose units are collected",
		values: Ys("global", "highest_pressure"),
		hint: "global"
	},
	{
		path: "gc.copies",
		label: "where copies go",
		values: Ys("apart", "with_host"),
		hint: "apart"
	},
	{
		path: "gc.lazy_valid_share",
		label: "lazy valid share",
		values: Js(0, .05, .1, .2),
		hint: "a share: 0.05"
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
		path: "handles.separation_bytes",
		label: "separation inside the drive",
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
		hint: "a size: 64MiB"
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
], Zs = "other";
function Qs(e) {
	let t = e.trim();
	return t === "true" || t === "false" ? t === "true" : t !== "" && Number.isFinite(Number(t)) ? Number(t) : t;
}
function $s(e) {
	return typeof e == "object" ? Object.entries(e).map(([e, t]) => `${e} ${t}`).join(", ") : String(e);
}
function ec(e) {
	return Object.entries(e).map(([e, t]) => {
		let n = Xs.find((t) => t.path === e), r = n?.values.find((e) => JSON.stringify(e.value) === JSON.stringify(t))?.label ?? $s(t);
		return e === "geometry.over_provisioning" ? `OP ${r}` : e === "handles.isolation" ? {
			initially_isolated: "II",
			persistently_isolated: "PI"
		}[String(t)] ?? r : e === "geometry.reclaim_unit_bytes" ? `units of ${r}` : n === void 0 ? `${e.split(".").at(-1)} ${r}` : r;
	}).join(", ");
}
function tc(e, t) {
	let n = e.settings[t];
	return n === void 0 ? "" : $s(n);
}
function nc(e, t) {
	for (let n = 2, r = e;; n += 1) {
		if (!t.includes(r)) return r;
		r = `${e} ${n}`;
	}
}
// src/parts/ForkDialog.tsx
function rc({ path: e, value: t, other: n }) {
	let r = Xs.find((t) => t.path === e.value);
	return /* @__PURE__ */ G(x, { children: [/* @__PURE__ */ G("label", { children: ["setting", /* @__PURE__ */ G("select", {
		value: e.value,
		onChange: (n) => {
			e.value = n.currentTarget.value;
			let r = Xs.find((t) => t.path === e.value);
			t.value = r?.values[0] === void 0 ? "" : JSON.stringify(r.values[0].value);
		},
		children: [Xs.map((e) => /* @__PURE__ */ G("option", {
			value: e.path,
			children: e.label
		}, e.path)), /* @__PURE__ */ G("option", {
			value: Zs,
			children: "another one …"
		})]
	})] }), r === void 0 ? /* @__PURE__ */ G(x, { children: [/* @__PURE__ */ G("label", { children: ["its name", /* @__PURE__ */ G("input", {
		type: "text",
		required: !0,
		placeholder: "gc.background_mark, workload.SECTION.OPTION",
		value: n.value,
		onInput: (e) => n.value = e.currentTarget.value,
		spellcheck: !1
	})] }), /* @__PURE__ */ G("label", { children: ["value", /* @__PURE__ */ G("input", {
		type: "text",
		required: !0,
		value: t.value,
		onInput: (e) => t.value = e.currentTarget.value,
		spellcheck: !1
	})] })] }) : /* @__PURE__ */ G("label", { children: ["value", /* @__PURE__ */ G("select", {
		value: t.value,
		onChange: (e) => t.value = e.currentTarget.value,
		children: r.values.map((e) => /* @__PURE__ */ G("option", {
			value: JSON.stringify(e.value),
			children: e.label
		}, e.label))
	})] })] });
}
function ic(e, t, n) {
	return e === "other" ? n.trim() === "" ? {} : { [n.trim()]: Qs(t) } : { [e]: JSON.parse(t) };
}
function ac({ session: e, open: t }) {
	let n = we(null), r = ft(0), i = ft("geometry.over_provisioning"), a = ft("0.28"), o = ft(""), s = ft("");
	Se(() => {
		t.value ? n.current?.showModal() : n.current?.close();
	}, [t.value]);
	let c = e.lanes.value, l = c[Math.min(r.value, c.length - 1)];
	if (l === void 0) return null;
	let u = ic(i.value, a.value, o.value), d = i.value === "other" ? "" : tc(l.lane, i.value), f = nc(ec(u) || "fork", c.map((e) => e.lane.name));
	return /* @__PURE__ */ G("dialog", {
		ref: n,
		onClose: () => t.value = !1,
		"aria-labelledby": "fork-title",
		children: /* @__PURE__ */ G("form", {
			method: "dialog",
			onSubmit: () => {
				Object.keys(u).length > 0 && e.fork(r.value, s.value.trim() || f, u);
			},
			children: [
				/* @__PURE__ */ G("h2", {
					id: "fork-title",
					children: [
						"Fork at ",
						yn(l.capacities),
						" drive-writes"
					]
				}),
				/* @__PURE__ */ G("p", {
					class: "note",
					children: "The fork is a lane of its own and goes on in step. What can change in a drive that is in use (unit selection, marks, the workload) changes from here; the rest begins at the start and catches up."
				}),
				c.length > 1 && /* @__PURE__ */ G("label", { children: ["lane", /* @__PURE__ */ G("select", {
					value: r.value,
					onChange: (e) => r.value = Number(e.currentTarget.value),
					children: c.map((e, t) => /* @__PURE__ */ G("option", {
						value: t,
						children: [
							K(t),
							" ",
							e.lane.name
						]
					}, t))
				})] }),
				/* @__PURE__ */ G(rc, {
					path: i,
					value: a,
					other: o
				}),
				/* @__PURE__ */ G("p", {
					class: "note",
					style: { minHeight: "1.5em" },
					children: d === "" ? "" : `${l.lane.name} has ${d}.`
				}),
				/* @__PURE__ */ G("label", { children: ["name of the fork", /* @__PURE__ */ G("input", {
					type: "text",
					value: s.value,
					placeholder: f,
					maxLength: 60,
					onInput: (e) => s.value = e.currentTarget.value
				})] }),
				/* @__PURE__ */ G("div", {
					class: "buttons",
					children: [/* @__PURE__ */ G("button", {
						type: "submit",
						class: "primary",
						children: "Fork"
					}), /* @__PURE__ */ G("button", {
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
// src/parts/Notice.tsx
function oc({ kind: e, onClose: t, children: n }) {
	return /* @__PURE__ */ G("div", {
		class: `notice ${e}`,
		role: e === "error" ? "alert" : "status",
		children: [/* @__PURE__ */ G("p", { children: n }), t !== void 0 && /* @__PURE__ */ G("button", {
			type: "button",
			class: "quiet",
			onClick: t,
			"aria-label": "Close",
			children: "×"
		})]
	});
}
// src/state/headline.ts
var sc = 5e-4;
function cc(e) {
	let t = Math.abs(e) * 100;
	return t >= 10 ? t.toFixed(0) : t.toFixed(1);
}
function lc(e, t, n, r, i) {
	let a = n / r - 1, o = `${gn(n)} against ${gn(r)}`;
	if (Math.abs(a) < sc) return {
		figure: "±0 %",
		sentence: `${e.lane.name} and ${t.lane.name} write the same to the flash${i}: ${o}.`
	};
	let s = a < 0 ? "less" : "more";
	return {
		figure: `${a < 0 ? "−" : "+"}${cc(a)} %`,
		sentence: `${e.lane.name} writes ${cc(a)} % ${s} to the flash than ${t.lane.name}${i}: ${o}.`
	};
}
function uc(e, t) {
	if (e[0] === void 0) return null;
	if (e.every((e) => e.phase === "filling" || e.phase === "waiting" && e.hostBytes === 0) && e.some((e) => e.phase === "filling")) return {
		figure: "–",
		sentence: "The drive is being filled before the run counts."
	};
	let n = e.at(-1);
	if (n !== void 0 && n.lane.of !== null) {
		let r = e[n.lane.of], i = t.at(-1)?.at_host_bytes ?? 0, a = En(n, i), o = r === void 0 ? null : En(r, i);
		return r !== void 0 && a !== null && o !== null ? lc(n, r, a, o, i > 0 ? " since the fork" : "") : {
			figure: "–",
			sentence: `${n.lane.name} is forked from ${r?.lane.name ?? "the first lane"}. Press play to see where they part.`
		};
	}
	let r = e.filter((e) => e.waf !== null);
	if (r.length === 0) return {
		figure: "–",
		sentence: "Nothing was written yet. Press play."
	};
	if (r.length === 1) {
		let e = r[0], t = e.waf;
		return e.collections === 0 ? {
			figure: gn(t),
			sentence: "Nothing was collected yet, so the flash takes what the host writes."
		} : {
			figure: gn(t),
			sentence: `For each byte that the host wrote, the flash took ${gn(t)}.`
		};
	}
	let i = [...r].sort((e, t) => e.waf - t.waf), a = i[0], o = i.at(-1);
	return lc(a, o, a.waf, o.waf, " so far");
}
// src/map/UnitMap.tsx
var dc = 26;
function fc({ session: e, state: t, grouping: n, mostHeight: r = 380 }) {
	let i = we(null), a = we(null), o = we(null), s = we(null), [c, l] = R(r), [u, d] = R([]), [f, p] = R(null), m = we(() => {}), h = n.value;
	Ce(() => {
		let c = i.current;
		if (c === null || a.current === null || o.current === null) return;
		let u = new U(a.current, o.current, t, {
			grouping: n.peek(),
			ground: Is.peek() ? jt : At,
			moves: Ls.peek()
		});
		s.current = u;
		let f = 0, p = !1, h = () => Math.min(2, globalThis.devicePixelRatio || 1), g = () => {
			let e = c.clientWidth;
			e !== 0 && (l(u.arrange(e, r, h(), {
				grouping: n.peek(),
				ground: Is.peek() ? jt : At,
				moves: Ls.peek()
			})), d([...u.layout?.regions ?? []]), p = !0);
		}, _ = 0, v = (e) => {
			f = 0, _ = e, (!p || u.isOutdated) && g();
			let t = u.layout?.regions;
			u.picture(e) && b(), u.isOutdated && g(), u.layout?.regions !== t && d([...u.layout?.regions ?? []]);
		}, y, b = () => {
			if (f !== 0 || y !== void 0) return;
			let e = _ + dc - performance.now();
			e <= 0 ? f = requestAnimationFrame(v) : y = setTimeout(() => {
				y = void 0, f === 0 && (f = requestAnimationFrame(v));
			}, e);
		};
		m.current = b;
		let x = rt(() => {
			e.drawn.value, b();
		}), S = rt(() => {
			n.value, Is.value, Ls.value, p = !1, b();
		}), C = c.clientWidth, w = new ResizeObserver(() => {
			c.clientWidth !== C && (C = c.clientWidth, p = !1, b());
		});
		return w.observe(c), () => {
			w.disconnect(), x(), S(), cancelAnimationFrame(f), clearTimeout(y), u.end(), s.current = null;
		};
	}, [
		e,
		t,
		r
	]), Se(() => {
		s.current?.setFocus(f), m.current();
	}, [f]);
	let g = (e) => {
		let t = o.current?.getBoundingClientRect(), n = s.current?.layout;
		if (t === void 0 || n == null || o.current === null) return;
		let r = o.current.width / t.width;
		p(n.unitAt((e.clientX - t.left) * r, (e.clientY - t.top) * r));
	};
	return /* @__PURE__ */ G("div", {
		class: "unit-map",
		"data-tour": "map",
		children: [/* @__PURE__ */ G("div", {
			class: "unit-map-frame",
			ref: i,
			style: { height: `${c}px` },
			role: "application",
			tabIndex: 0,
			"aria-roledescription": "map of reclaim units",
			"aria-label": `${vn(t.lane.units)} reclaim units of ${t.lane.name}. Arrow keys go from unit to unit.`,
			onPointerMove: g,
			onPointerDown: g,
			onPointerLeave: (e) => e.pointerType === "mouse" && p(null),
			onKeyDown: (e) => {
				let t = s.current?.layout;
				if (t == null) return;
				let n = {
					ArrowLeft: [-1, 0],
					ArrowRight: [1, 0],
					ArrowUp: [0, -1],
					ArrowDown: [0, 1]
				}[e.key];
				n === void 0 ? e.key === "Escape" && p(null) : (e.preventDefault(), p(f === null ? t.first() : t.beside(f, ...n)));
			},
			children: [
				/* @__PURE__ */ G("canvas", {
					ref: a,
					class: "tiles",
					"aria-hidden": "true"
				}),
				/* @__PURE__ */ G("canvas", {
					ref: o,
					class: "above",
					"aria-hidden": "true"
				}),
				h !== "physical" && /* @__PURE__ */ G(pc, {
					session: e,
					state: t,
					regions: u,
					grouping: h,
					scale: o.current?.width ? o.current.width / (i.current?.clientWidth || 1) : 1
				})
			]
		}), /* @__PURE__ */ G(gc, {
			session: e,
			state: t,
			unit: f
		})]
	});
}
function pc({ session: e, state: t, regions: n, grouping: r, scale: i }) {
	e.told.value;
	let a = kt(t.lane.owners, on(t));
	return /* @__PURE__ */ G(x, { children: n.map((e) => {
		let n = { top: `${e.top / i}px` };
		if (r === "group") return /* @__PURE__ */ G("div", {
			class: "region",
			style: n,
			children: /* @__PURE__ */ G("b", { children: ["reclaim group ", e.key] })
		}, e.key);
		if (e.key === 255) return /* @__PURE__ */ G("div", {
			class: "region",
			style: n,
			children: [
				/* @__PURE__ */ G("i", { class: "swatch free" }),
				/* @__PURE__ */ G("b", { children: "free" }),
				/* @__PURE__ */ G("span", { children: [vn(t.freeUnits), " units"] })
			]
		}, e.key);
		let o = t.lane.owners[e.key], s = t.owners[e.key], c = t.lane.placements.length === t.lane.owners.length ? t.lane.placements[e.key] : void 0;
		return /* @__PURE__ */ G("div", {
			class: "region",
			style: n,
			children: [
				/* @__PURE__ */ G("i", {
					class: "swatch",
					style: { background: a[e.key] }
				}),
				/* @__PURE__ */ G("b", { children: o?.name }),
				c !== void 0 && c !== "" && /* @__PURE__ */ G("em", { children: c }),
				/* @__PURE__ */ G("span", { children: [
					vn(s?.units ?? 0),
					" units",
					s !== void 0 && s.units > 0 && `, ${_n(s.validPages / (s.units * t.unitPages))} valid`
				] })
			]
		}, e.key);
	}) });
}
var mc = {
	0: "free",
	1: "open for the host",
	2: "open for collection",
	3: "closed"
};
function hc(e, t) {
	let n = e.unitOf(t), r = e.state[n] ?? 0, i = e.lane.groups > 1 ? `, reclaim group ${e.group[n]}` : "";
	if (r === 0) return `free${i}`;
	let a = e.pagesOf(n), o = e.lane.owners[e.owner[n] ?? 255], s = o?.isolation === null || o === void 0 ? "" : ` (${o.isolation})`, c = e.valid[n] ?? 0, l = e.written[n] ?? 0, u = l < a ? `, room for ${vn(a - l)}` : "";
	return `${o?.name ?? "nobody"}${s}, ${mc[r] ?? "unknown"}${i}: ${_n(c / a)} valid (${vn(c)} of ${vn(a)} pages), ${vn(l)} written${u}`;
}
function gc({ session: e, state: t, unit: n }) {
	return e.told.value, /* @__PURE__ */ G("p", {
		class: "unit-line",
		"aria-live": "polite",
		children: n === null ? "Point at a unit, or go from one to the next with the arrow keys." : /* @__PURE__ */ G(x, { children: [
			/* @__PURE__ */ G("b", { children: ["unit ", t.unitOf(n)] }),
			" ",
			hc(t, n)
		] })
	});
}
function _c() {
	return /* @__PURE__ */ G("p", {
		class: "legend",
		children: [
			/* @__PURE__ */ G("span", { children: [/* @__PURE__ */ G("i", { class: "swatch key" }), " valid"] }),
			/* @__PURE__ */ G("span", { children: [/* @__PURE__ */ G("i", { class: "swatch key dead" }), " written, no longer valid"] }),
			/* @__PURE__ */ G("span", { children: [/* @__PURE__ */ G("i", { class: "swatch key open" }), " open for the host"] }),
			/* @__PURE__ */ G("span", { children: [/* @__PURE__ */ G("i", { class: "swatch key collecting" }), " open for collection"] })
		]
	});
}
// src/parts/LanePanel.tsx
var vc = {
	waiting: "waiting",
	filling: "filling before the run",
	running: "running",
	paused: "paused",
	ended: "ended",
	failed: "failed"
};
function yc({ session: e, state: t, index: n, grouping: r, mostHeight: i }) {
	e.told.value;
	let { lane: a } = t, o = e.lanes.value.length === 1;
	return /* @__PURE__ */ G("article", {
		class: "lane",
		"aria-label": `Lane ${a.name}`,
		children: [
			/* @__PURE__ */ G("header", {
				class: "lane-head",
				children: [
					/* @__PURE__ */ G("div", {
						class: "lane-name",
						children: [
							!o && /* @__PURE__ */ G(ln, { index: n }),
							/* @__PURE__ */ G("h2", { children: a.name || a.device }),
							a.of !== null && /* @__PURE__ */ G("button", {
								type: "button",
								class: "quiet",
								onClick: () => e.drop(n),
								"aria-label": `Drop lane ${a.name}`,
								children: "drop"
							})
						]
					}),
					/* @__PURE__ */ G("p", {
						class: "lane-waf",
						"aria-label": `write amplification ${gn(t.waf)}`,
						children: [
							/* @__PURE__ */ G("span", { children: "WAF" }),
							" ",
							/* @__PURE__ */ G("b", { children: gn(t.waf) })
						]
					}),
					/* @__PURE__ */ G("p", {
						class: "lane-sub",
						children: [
							a.device,
							a.scale !== "" && a.scale !== "1/1" && ` at ${a.scale}`,
							", ",
							pn(a.capacity_bytes),
							a.workload !== "" && /* @__PURE__ */ G(x, { children: [", ", a.workload] }),
							a.forked === "start" && ", forked from the start",
							a.forked === "here" && ", forked there"
						]
					}),
					/* @__PURE__ */ G("p", {
						class: "lane-phase",
						"data-phase": t.phase,
						children: vc[t.phase]
					})
				]
			}),
			typeof a.error == "string" && /* @__PURE__ */ G(oc, {
				kind: "error",
				children: a.error
			}),
			/* @__PURE__ */ G(fc, {
				session: e,
				state: t,
				grouping: r,
				mostHeight: i
			}),
			/* @__PURE__ */ G("div", {
				class: "lane-side",
				children: [
					/* @__PURE__ */ G(xc, { state: t }),
					/* @__PURE__ */ G(Sc, { state: t }),
					/* @__PURE__ */ G("dl", {
						class: "facts",
						children: [
							/* @__PURE__ */ G(bc, {
								name: "host",
								value: `${yn(t.capacities)} ×`,
								title: pn(t.hostBytes)
							}),
							/* @__PURE__ */ G(bc, {
								name: "flash",
								value: `${yn(t.mediaBytes / a.capacity_bytes)} ×`,
								title: pn(t.mediaBytes)
							}),
							/* @__PURE__ */ G(bc, {
								name: "collections",
								value: xn(t.collections)
							}),
							/* @__PURE__ */ G(bc, {
								name: "requests",
								value: xn(t.requests)
							}),
							/* @__PURE__ */ G(bc, {
								name: "pages/s",
								value: t.pagesPerSecond > 0 ? xn(t.pagesPerSecond) : "–"
							})
						]
					}),
					/* @__PURE__ */ G(wc, { state: t })
				]
			})
		]
	});
}
function bc({ name: e, value: t, title: n }) {
	return /* @__PURE__ */ G("div", { children: [/* @__PURE__ */ G("dt", { children: e }), /* @__PURE__ */ G("dd", {
		title: n,
		children: t
	})] });
}
function xc({ state: e }) {
	let { marks: t, superblocks: n } = e.lane, r = Math.max(8, Math.min(n, Math.max(t.background_free_units, t.foreground_free_units) * 4)), i = (e) => `${Math.min(100, e / r * 100)}%`, a = e.freeUnits <= t.foreground_free_units ? "foreground" : e.freeUnits <= t.background_free_units ? "background" : "calm", o = {
		calm: "no collection",
		background: "background collection",
		foreground: "foreground collection"
	}[a];
	return /* @__PURE__ */ G("div", {
		class: "free-units",
		"data-tour": "free",
		"data-level": a,
		children: [
			/* @__PURE__ */ G("p", { children: [
				/* @__PURE__ */ G("b", { children: vn(e.freeUnits) }),
				" free units, ",
				o
			] }),
			/* @__PURE__ */ G("div", {
				class: "gauge",
				role: "img",
				"aria-label": `${e.freeUnits} free units; background collection at ${t.background_free_units}, foreground at ${t.foreground_free_units}`,
				children: [
					/* @__PURE__ */ G("i", {
						class: "level",
						style: { width: i(e.freeUnits) }
					}),
					/* @__PURE__ */ G("i", {
						class: "mark",
						style: { left: i(t.foreground_free_units) }
					}),
					/* @__PURE__ */ G("i", {
						class: "mark",
						style: { left: i(t.background_free_units) }
					})
				]
			}),
			/* @__PURE__ */ G("p", {
				class: "marks",
				"aria-hidden": "true",
				children: [
					"foreground ",
					t.foreground_free_units,
					", background ",
					t.background_free_units
				]
			})
		]
	});
}
function Sc({ state: e }) {
	let { lane: t } = e, n = kt(t.owners, on(e)), r = t.owners.map((e, t) => ({
		owner: e,
		index: t
	})).filter(({ index: t }) => {
		let n = e.owners[t];
		return n !== void 0 && (n.hostBytes > 0 || n.units > 0 || n.received > 0);
	});
	return /* @__PURE__ */ G("div", {
		class: "scroll",
		"data-tour": "handles",
		children: /* @__PURE__ */ G("table", {
			class: "numbers",
			children: [/* @__PURE__ */ G("thead", { children: /* @__PURE__ */ G("tr", { children: [
				/* @__PURE__ */ G("th", {
					scope: "col",
					children: "handle"
				}),
				/* @__PURE__ */ G("th", {
					scope: "col",
					children: "units"
				}),
				/* @__PURE__ */ G("th", {
					scope: "col",
					children: "valid"
				}),
				/* @__PURE__ */ G("th", {
					scope: "col",
					children: "host"
				}),
				/* @__PURE__ */ G("th", {
					scope: "col",
					children: "copied"
				}),
				/* @__PURE__ */ G("th", {
					scope: "col",
					children: "own WAF"
				})
			] }) }), /* @__PURE__ */ G("tbody", { children: [r.length === 0 && /* @__PURE__ */ G("tr", {
				class: "quiet-row",
				children: [
					/* @__PURE__ */ G("th", {
						scope: "row",
						children: "none yet"
					}),
					/* @__PURE__ */ G("td", { children: "–" }),
					/* @__PURE__ */ G("td", { children: "–" }),
					/* @__PURE__ */ G("td", { children: "–" }),
					/* @__PURE__ */ G("td", { children: "–" }),
					/* @__PURE__ */ G("td", { children: "–" })
				]
			}), r.map(({ owner: r, index: i }) => {
				let a = e.owners[i];
				return a === void 0 ? null : /* @__PURE__ */ G("tr", { children: [
					/* @__PURE__ */ G("th", {
						scope: "row",
						children: [
							/* @__PURE__ */ G("i", {
								class: "swatch",
								style: { background: n[i] }
							}),
							" ",
							r.name,
							r.isolation !== null && /* @__PURE__ */ G("small", { children: r.isolation })
						]
					}),
					/* @__PURE__ */ G("td", { children: vn(a.units) }),
					/* @__PURE__ */ G("td", { children: a.units > 0 ? _n(a.validPages / (a.units * e.unitPages)) : "–" }),
					/* @__PURE__ */ G("td", {
						title: pn(a.hostBytes),
						children: r.isolation === null ? "–" : `${yn(a.hostBytes / t.capacity_bytes)} ×`
					}),
					/* @__PURE__ */ G("td", {
						title: `${vn(a.copiedOut)} pages`,
						children: [yn(a.copiedOut * t.page_bytes / t.capacity_bytes), " ×"]
					}),
					/* @__PURE__ */ G("td", { children: gn(e.ownerWaf(i)) })
				] }, i);
			})] })]
		})
	});
}
var Cc = {
	nothing_written: "nothing written: the host wrote nothing",
	never_collected: "never collected: no reclaim unit was reclaimed, so a WAF of 1 says nothing; write more",
	not_steady: "not steady: it ended before it was steady; write more",
	not_settled: "not settled: the last two drive-writes differ by more than 2 %; write more",
	start_included: "start included: it has settled, and over the whole run it is another because that counts the beginning",
	little_used: "little used: less than half of the drive holds data; fill it first",
	unwritten_read: "unwritten read: pages were read that were never written; fill the drive first",
	without_effect: "without effect: options of the job file that are not modelled",
	not_converged: "not converged: no two twins agreed",
	too_few_pages: "too few pages: the twin's reclaim units are too small; take a larger scale"
};
function wc({ state: e }) {
	let t = e.result?.findings ?? [];
	return t.length === 0 ? null : /* @__PURE__ */ G("ul", {
		class: "findings",
		children: t.map((e) => /* @__PURE__ */ G("li", { children: e.message ?? Cc[e.name] ?? e.name.replaceAll("_", " ") }, e.name))
	});
}
// src/parts/Stage.tsx
function Tc({ session: e }) {
	e.told.value;
	let t = uc(e.lanes.value, e.order.value?.forks ?? []);
	return /* @__PURE__ */ G("div", {
		class: "headline",
		"data-tour": "headline",
		children: [/* @__PURE__ */ G("p", {
			class: "figure",
			children: t?.figure ?? "–"
		}), /* @__PURE__ */ G("p", {
			class: "sentence",
			children: t?.sentence ?? "Waiting for the first picture of the drive."
		})]
	});
}
function Ec({ session: e }) {
	let t = ft("handle"), n = e.lanes.value;
	if (n.length === 0) return /* @__PURE__ */ G("div", {
		class: "lanes skeleton",
		"aria-busy": "true",
		children: /* @__PURE__ */ G("article", {
			class: "lane",
			children: /* @__PURE__ */ G("div", {
				class: "unit-map-frame",
				style: { height: "380px" }
			})
		})
	});
	let r = n.some((e) => e.lane.groups > 1), i = n.some((e) => e.lane.units > 16384), a = n.length > 1 ? 400 : i ? 620 : 430;
	return /* @__PURE__ */ G("section", {
		"aria-label": "Drive",
		children: [/* @__PURE__ */ G("div", {
			class: "bar",
			children: [
				/* @__PURE__ */ G("h2", { children: "Reclaim units" }),
				/* @__PURE__ */ G(un, {
					label: "order of units",
					value: t.value,
					onChange: (e) => t.value = e,
					choices: [
						["handle", "by handle"],
						...r ? [["group", "by reclaim group"]] : [],
						["physical", "physical order"]
					]
				}),
				/* @__PURE__ */ G(_c, {})
			]
		}), /* @__PURE__ */ G("div", {
			class: "lanes",
			"data-lanes": n.length === 1 && i ? "large" : n.length,
			children: n.map((n, r) => /* @__PURE__ */ G(yc, {
				session: e,
				state: n,
				index: r,
				grouping: t,
				mostHeight: a
			}, `${r} ${n.lane.name}`))
		})]
	});
}
// src/parts/Transport.tsx
var Dc = [
	["0.001 ×/s", .001],
	["0.01 ×/s", .01],
	["0.05 ×/s", .05],
	["0.2 ×/s", .2],
	["1 ×/s", 1],
	["full speed", null]
], Oc = [
	1,
	100,
	1e4
], kc = 1e4, Ac = 120;
function jc(e) {
	let t = e.lanes.value;
	return t.length > 0 && t.every((e) => e.phase === "ended" || e.phase === "failed");
}
function Mc(e) {
	jc(e) ? (e.seek(0), e.play()) : e.running.value ? e.pause() : e.play();
}
function Nc({ session: e }) {
	e.told.value;
	let t = e.lanes.value[0], n = ft(null), r = we(0), i = we(null);
	if (Se(() => {
		let t = (t) => {
			let n = t.target;
			t.ctrlKey || t.metaKey || t.altKey || n.closest("input, select, textarea, button, dialog, [contenteditable]") !== null || (t.key === " " ? (t.preventDefault(), Mc(e)) : t.key === "." && e.step(1));
		};
		return document.addEventListener("keydown", t), () => document.removeEventListener("keydown", t);
	}, [e]), t === void 0) return null;
	let a = t.lane.capacity_bytes, o = e.endBytes, s = n.value ?? e.seeking.value ?? e.hostBytes, c = jc(e), l = e.running.value && !c, u = (t, i) => {
		let a = t / kc * o;
		n.value = i ? null : a;
		let s = performance.now();
		(i || s - r.current > Ac) && (r.current = s, e.seek(a));
	}, d = e.speed.value, f = Dc.some(([, e]) => e === null ? d === null : d !== null && Math.abs(e * a - d) < a * 1e-6);
	return /* @__PURE__ */ G("div", {
		class: "transport",
		ref: i,
		"data-tour": "time",
		role: "group",
		"aria-label": "Time",
		children: [
			/* @__PURE__ */ G("button", {
				type: "button",
				class: "play",
				onClick: () => Mc(e),
				title: c ? "From the beginning (Space)" : "Space",
				children: [/* @__PURE__ */ G("svg", {
					viewBox: "0 0 16 16",
					width: "16",
					height: "16",
					"aria-hidden": "true",
					children: l ? /* @__PURE__ */ G("path", { d: "M3 2h4v12H3zM9 2h4v12H9z" }) : /* @__PURE__ */ G("path", { d: "M3 1.5v13l11-6.5z" })
				}), /* @__PURE__ */ G("span", {
					class: "hidden",
					children: l ? "Pause" : c ? "Play from the beginning" : "Play"
				})]
			}),
			/* @__PURE__ */ G("div", {
				class: "steps",
				role: "group",
				"aria-label": "Step",
				children: Oc.map((t) => /* @__PURE__ */ G("button", {
					type: "button",
					onClick: () => e.step(t),
					disabled: c,
					"aria-label": `+${t >= 1e3 ? `${t / 1e3}k` : t}: step by ${t === 1 ? "a request" : `${t} requests`}`,
					title: t === 1 ? "Step by a request (.)" : `Step by ${t} requests`,
					children: ["+", t >= 1e3 ? `${t / 1e3}k` : t]
				}, t))
			}),
			/* @__PURE__ */ G("div", {
				class: "slider",
				children: [/* @__PURE__ */ G("input", {
					type: "range",
					min: 0,
					max: kc,
					step: 1,
					value: o === 0 ? 0 : Math.round(s / o * kc),
					"aria-label": "Where in the run",
					"aria-valuetext": `${yn(s / a)} of ${yn(o / a)} drive-writes`,
					onInput: (e) => u(Number(e.currentTarget.value), !1),
					onChange: (e) => u(Number(e.currentTarget.value), !0),
					style: { "--at": `${o === 0 ? 0 : Math.min(100, s / o * 100)}%` }
				}), (e.order.value?.forks ?? []).map((e, t) => /* @__PURE__ */ G("i", {
					class: "fork-mark",
					style: { left: `${Math.min(100, e.at_host_bytes / o * 100)}%` },
					title: `fork: ${e.name}`
				}, t))]
			}),
			/* @__PURE__ */ G("output", {
				class: "position",
				title: pn(s),
				children: [
					/* @__PURE__ */ G("b", { children: yn(s / a) }),
					" of ",
					yn(o / a),
					" ",
					/* @__PURE__ */ G("span", { children: "drive-writes" })
				]
			}),
			/* @__PURE__ */ G("label", {
				class: "speed",
				children: [/* @__PURE__ */ G("span", {
					class: "hidden",
					children: "Speed"
				}), /* @__PURE__ */ G("select", {
					value: f ? String(Dc.findIndex(([, e]) => e === null ? d === null : d !== null && Math.abs(e * a - d) < a * 1e-6)) : "given",
					onChange: (t) => {
						let n = Dc[Number(t.currentTarget.value)]?.[1];
						n !== void 0 && e.setSpeed(n === null ? null : n * a);
					},
					children: [Dc.map(([e], t) => /* @__PURE__ */ G("option", {
						value: t,
						children: e
					}, e)), !f && /* @__PURE__ */ G("option", {
						value: "given",
						children: [pn(d ?? 0), "/s"]
					})]
				})]
			})
		]
	});
}
// src/wire/api.ts
var Pc = "warp.token", Fc = class extends Error {
	status;
	constructor(e, t) {
		super(t), this.status = e;
	}
}, Ic = class e {
	base;
	token;
	constructor(e, t) {
		this.base = e.replace(/\/+$/, ""), this.token = t;
	}
	static ofPage() {
		let t = new URL(location.href), n = t.searchParams.get("token");
		return n !== null && (sessionStorage.setItem(Pc, n), t.searchParams.delete("token"), history.replaceState(null, "", t)), new e(t.origin, sessionStorage.getItem(Pc));
	}
	async ask(e, t, n) {
		let r = {};
		this.token !== null && (r.Authorization = `Bearer ${this.token}`), n !== void 0 && (r["Content-Type"] = "application/json");
		let i;
		try {
			i = await fetch(this.base + t, {
				method: e,
				headers: r,
				body: n === void 0 ? null : JSON.stringify(n)
			});
		} catch {
			throw new Fc(0, "The server does not answer. Start it again with `warp studio`; this page goes on by itself.");
		}
		if (i.ok) return i;
		let a = await i.json().catch(() => null), o = typeof a == "object" && a && "error" in a && typeof a.error == "string" ? a.error : `The server answered ${i.status} to ${e} ${t}.`;
		throw new Fc(i.status, o);
	}
	async json(e) {
		return await (await this.ask("GET", e)).json();
	}
	about = () => this.json("/api/about");
	catalogue = () => this.json("/api/catalogue");
	options = () => this.json("/api/options");
	sessions = () => this.json("/api/sessions");
	runs = () => this.json("/api/runs");
	drive = () => this.json("/api/drive");
	order = (e) => this.json(`/api/sessions/${encodeURIComponent(e)}/order`);
	async text(e, t) {
		return (await this.ask("GET", `/api/text/${e}/${encodeURIComponent(t)}`)).text();
	}
	async check(e, t) {
		return (await (await this.ask("POST", "/api/check", {
			name: e,
			text: t
		})).json()).problems;
	}
	async begin(e) {
		return (await (await this.ask("POST", "/api/sessions", e)).json()).id;
	}
	async end(e) {
		await this.ask("DELETE", `/api/sessions/${encodeURIComponent(e)}`);
	}
	async export(e, t) {
		return (await this.ask("GET", `/api/sessions/${encodeURIComponent(e)}/export/${t}`)).blob();
	}
	async act(e, t) {
		await this.ask("POST", `/api/drive/${e}`, t);
	}
	socket(e) {
		let t = this.base.replace(/^http/, "ws") + e, n = this.token === null ? [] : [`warp.token.${Lc(new TextEncoder().encode(this.token))}`], r = new WebSocket(t, n);
		return r.binaryType = "arraybuffer", r;
	}
};
function Lc(e) {
	let t = "";
	for (let n of e) t += String.fromCharCode(n);
	return btoa(t).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
// src/wire/live.ts
var Rc = 300, zc = 8e3;
function Bc(e) {
	return Math.min(zc, Rc * 1.7 ** e);
}
var Vc = class {
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
			if (e instanceof Fc && e.status === 404) {
				this.closed = !0, this.listener.onConnection("gone");
				return;
			}
			e instanceof Fc && e.status !== 0 && this.listener.onTrouble(e.message), this.again();
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
			typeof e == "string" ? this.listener.onMessage(JSON.parse(e)) : this.listener.onFrame(new wt(e));
		} catch (e) {
			if (!(e instanceof Ct || e instanceof SyntaxError)) throw e;
			this.listener.onTrouble(e.message);
		}
	}
	again() {
		this.tries += 1, this.listener.onConnection("lost"), this.timer = setTimeout(() => void this.open(), Bc(this.tries - 1));
	}
	send(e) {
		return this.socket?.readyState === WebSocket.OPEN && (this.socket.send(JSON.stringify(e)), !0);
	}
	close() {
		this.closed = !0, clearTimeout(this.timer), this.socket?.close();
	}
}, Hc = 64, Uc = class {
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
}, Wc = class {
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
	sampleHost = new Uc();
	sampleMedia = new Uc();
	sampleOwnerHost;
	sampleOwnerCopied;
	events = [];
	eventNumber = 0;
	moves = [];
	result = null;
	latency = null;
	constructor(e) {
		this.lane = e;
		let t = e.units;
		this.state = new Uint8Array(t), this.owner = new Uint8Array(t).fill(255), this.group = new Uint16Array(t), this.valid = new Uint32Array(t), this.written = new Uint32Array(t), this.span = new Uint8Array(t).fill(1), this.openedPages = new Uint32Array(t), this.changed = new Uint32Array(t), this.isChanged = new Uint8Array(t), this.freeUnits = t, this.sampleOwnerHost = e.owners.map(() => new Uc()), this.sampleOwnerCopied = e.owners.map(() => new Uc()), this.forget();
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
			n.number = this.eventNumber, this.eventNumber += 1, this.events.push(n), n.kind === "open" && n.unit < this.openedPages.length && (this.openedPages[n.unit] = n.pages), n.kind === "reclaim" && this.moves.length < Hc && this.moves.push(n);
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
function Gc(e) {
	let t = (e) => Object.fromEntries(Object.entries(e).sort(([e], [t]) => e < t ? -1 : 1));
	return {
		experiment: e.experiment,
		workload: e.workload === null ? null : e.workload.text === void 0 ? { name: e.workload.name } : {
			name: e.workload.name,
			text: e.workload.text
		},
		device: e.device,
		scale: e.scale,
		write: e.write,
		prefill: e.prefill,
		timed: e.timed,
		seed: e.seed,
		lanes: e.lanes.map((e) => ({
			name: e.name,
			only: e.only,
			set: t(e.set)
		})),
		forks: e.forks.map((e) => ({
			of: e.of,
			name: e.name,
			at_host_bytes: e.at_host_bytes,
			set: t(e.set)
		}))
	};
}
function Kc(e, t) {
	return JSON.stringify(Gc({
		...e,
		forks: []
	})) === JSON.stringify(Gc({
		...t,
		forks: []
	}));
}
// src/state/session.ts
var qc = 120, Jc = class e {
	api;
	id;
	title = H("");
	lanes = H([]);
	running = H(!1);
	speed = H(null);
	connection = H("connecting");
	problem = H(null);
	order = H(null);
	hosts = H(null);
	drawn = H(0);
	told = H(0);
	seeking = H(null);
	live;
	toldAt = 0;
	toldTimer;
	constructor(e, t, n, r) {
		this.api = e, this.id = t, this.live = new Vc(e, n, r, this);
	}
	static of(t, n) {
		let r = `/api/sessions/${encodeURIComponent(n)}/live`, i = new e(t, n, r, async (e) => {
			let t = await e.order(n), r = i.order.peek();
			if (r !== null && !Kc(r, t)) throw new Fc(404, `Session ${n} is another run now.`);
		});
		return i;
	}
	static ofDrive(t) {
		return new e(t, "drive", "/api/drive/live", (e) => e.drive());
	}
	onConnection(e) {
		this.connection.value = e;
	}
	onTrouble(e) {
		this.problem.value = e;
	}
	onFrame(e) {
		let t = performance.now(), n = this.lanes.value[e.lane];
		n !== void 0 && (n.apply(e), this.seeking.value !== null && (this.seeking.value = null), this.drawn.value += 1, this.tell(), Tt.frame(performance.now() - t));
	}
	tell() {
		let e = performance.now();
		e - this.toldAt >= qc ? (this.toldAt = e, this.told.value += 1) : this.toldTimer ??= setTimeout(() => {
			this.toldTimer = void 0, this.toldAt = performance.now(), this.told.value += 1;
		}, qc);
	}
	onMessage(e) {
		switch (e.type) {
			case "session":
				Le(() => {
					this.title.value = e.title, this.running.value = e.running, this.speed.value = e.speed, this.take(e.lanes);
				}), this.id !== "drive" && this.learnOrder();
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
			case "hosts": this.hosts.value = e;
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
			return r === void 0 || !r.fits(e) || r.lane.name !== e.name ? new Wc(e) : (r.lane = e, r);
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
		this.live.send(e) ? this.problem.value !== null && (this.problem.value = null) : this.problem.value = "Not connected, so nothing was sent. The page tries again by itself.";
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
}, Yc = ".uplot,.uplot *,.uplot :before,.uplot :after{box-sizing:border-box}.uplot{width:min-content;font-family:system-ui,-apple-system,Segoe UI,Roboto,Helvetica Neue,Arial,Noto Sans,sans-serif,Apple Color Emoji,Segoe UI Emoji,Segoe UI Symbol,Noto Color Emoji;line-height:1.5}.u-title{text-align:center;font-size:18px;font-weight:700}.u-wrap{-webkit-user-select:none;user-select:none;position:relative}.u-over,.u-under{position:absolute}.u-under{overflow:hidden}.uplot canvas{width:100%;height:100%;display:block;position:relative}.u-axis{position:absolute}.u-legend{text-align:center;margin:auto;font-size:14px}.u-inline{display:block}.u-inline *{display:inline-block}.u-inline tr{margin-right:16px}.u-legend th{font-weight:600}.u-legend th>*{vertical-align:middle;display:inline-block}.u-legend .u-marker{width:1em;height:1em;margin-right:4px;background-clip:padding-box!important}.u-inline.u-live th:after{content:\":\";vertical-align:middle}.u-inline:not(.u-live) .u-value{display:none}.u-series>*{padding:4px}.u-series th{cursor:pointer}.u-legend .u-off>*{opacity:.3}.u-select{pointer-events:none;background:#00000012;position:absolute}.u-cursor-x,.u-cursor-y{pointer-events:none;will-change:transform;position:absolute;top:0;left:0}.u-hz .u-cursor-x,.u-vt .u-cursor-y{border-right:1px dashed #607d8b;height:100%}.u-hz .u-cursor-y,.u-vt .u-cursor-x{border-bottom:1px dashed #607d8b;width:100%}.u-cursor-pt{pointer-events:none;will-change:transform;border:0 solid;border-radius:50%;position:absolute;top:0;left:0;background-clip:padding-box!important}.u-axis.u-off,.u-select.u-off,.u-cursor-x.u-off,.u-cursor-y.u-off,.u-cursor-pt.u-off{display:none}", Xc = ":root,.warp-studio{--lightningcss-light:initial;--lightningcss-dark: ;color-scheme:light dark;--paper:var(--lightningcss-light,#fff)var(--lightningcss-dark,#0d1117);--raised:var(--lightningcss-light,#f6f8fa)var(--lightningcss-dark,#161b22);--ink:var(--lightningcss-light,#1f2328)var(--lightningcss-dark,#e6edf3);--muted:var(--lightningcss-light,#59636e)var(--lightningcss-dark,#9198a1);--line:var(--lightningcss-light,#d9dee3)var(--lightningcss-dark,#2b323b);--edge:var(--lightningcss-light,#818b98)var(--lightningcss-dark,#656c76);--free:var(--lightningcss-light,#edf0f2)var(--lightningcss-dark,#20262e);--link:var(--lightningcss-light,#0550ae)var(--lightningcss-dark,#79b8ff);--focus:var(--lightningcss-light,#0072b2)var(--lightningcss-dark,#56b4e9);--alarm:var(--lightningcss-light,#a40e26)var(--lightningcss-dark,#ff8182);--alarm-paper:var(--lightningcss-light,#fff1f0)var(--lightningcss-dark,#2a1516);--wait-paper:var(--lightningcss-light,#fff8e6)var(--lightningcss-dark,#241d0c);--code-name:var(--lightningcss-light,#0550ae)var(--lightningcss-dark,#79b8ff);--code-value:var(--lightningcss-light,#7a3e00)var(--lightningcss-dark,#f0a868);--sans:system-ui, -apple-system, \"Segoe UI\", Roboto, \"Noto Sans\", \"Liberation Sans\", sans-serif;--mono:ui-monospace, \"SF Mono\", \"Cascadia Mono\", \"Noto Sans Mono\", \"Liberation Mono\", monospace;--s:.75rem;--m:.875rem;--l:1rem;--xl:1.25rem;--xxl:1.75rem;--huge:2.75rem;--radius:6px;--page:1480px}@media (prefers-color-scheme:dark){:root,.warp-studio{--lightningcss-light: ;--lightningcss-dark:initial}}:root[data-theme=light]{--lightningcss-light:initial;--lightningcss-dark: ;color-scheme:light}:root[data-theme=dark]{--lightningcss-light: ;--lightningcss-dark:initial;color-scheme:dark}*,:before,:after{box-sizing:border-box}html{background:var(--paper);scroll-padding:64px 0 96px}body,.warp-studio{background:var(--paper);color:var(--ink);font:var(--m) / 1.5 var(--sans);font-variant-numeric:tabular-nums;-webkit-text-size-adjust:100%;margin:0}h1,h2,p,dl,dd,ul,ol,figure,fieldset{margin:0;padding:0}ul,ol{list-style:none}h1{font-size:var(--xl);text-wrap:balance;font-weight:650;line-height:1.3}h2{font-size:var(--l);font-weight:650;line-height:1.4}small{font-size:var(--s);color:var(--muted);margin-left:4px;font-weight:400}a{color:var(--link);text-underline-offset:3px}code{font-family:var(--mono);font-size:.93em}.hidden{clip-path:inset(50%);white-space:nowrap;width:1px;height:1px;position:absolute;left:0;overflow:hidden}.note,.empty,figcaption{color:var(--muted);max-width:68ch}.empty{padding:16px 0}.lead{font-size:var(--l);color:var(--muted);max-width:60ch;margin-top:4px}button,select,input[type=text],input[type=search],input[type=number]{font:inherit;color:var(--ink);background:var(--paper);border:1px solid var(--edge);border-radius:var(--radius);max-width:100%;height:32px;padding:0 10px}select{text-overflow:ellipsis;padding:0 6px}button{cursor:pointer;white-space:nowrap;font-weight:550}button:hover:not(:disabled),select:hover{border-color:var(--ink)}button:disabled{color:var(--muted);border-color:var(--line);cursor:default}button.primary{background:var(--ink);color:var(--paper);border-color:var(--ink)}button.primary:disabled{background:var(--raised);color:var(--muted);border-color:var(--line)}button.large{height:44px;font-size:var(--l);padding:0 28px}button.quiet{color:var(--muted);background:0 0;border-color:#0000;padding:0 6px;font-weight:400}button.link{color:var(--link);text-underline-offset:3px;background:0 0;border:0;height:auto;padding:0;font-weight:400;text-decoration:underline}::placeholder{color:var(--muted);opacity:1}:focus-visible{outline:2px solid var(--focus);outline-offset:2px}main:focus{outline:none}fieldset{border:0;min-width:0;position:relative}label{position:relative}legend{margin-bottom:8px;padding:0;font-weight:650}.inline{color:var(--muted);align-items:center;gap:6px;display:inline-flex}.below .bar h2{min-width:3.6em}.bar{flex-wrap:wrap;align-items:center;gap:8px 16px;margin-bottom:12px;display:flex}.choice{background:var(--raised);border-radius:var(--radius);border:1px solid var(--line);scrollbar-width:none;max-width:100%;display:inline-flex;overflow-x:auto}.choice label{cursor:pointer;display:block;position:relative}.choice input{opacity:0;width:1px;height:1px;position:absolute}.choice span{color:var(--muted);white-space:nowrap;border:1px solid #0000;border-radius:5px;padding:4px 12px;display:block}.choice input:checked+span{background:var(--paper);color:var(--ink);border-color:var(--edge);font-weight:550}.choice input:focus-visible+span{outline:2px solid var(--focus);outline-offset:-2px}.skip{position:absolute;left:-999px}.skip:focus{z-index:9;background:var(--paper);padding:8px;top:8px;left:8px}.top{z-index:5;height:52px;padding:0 max(24px, calc((100vw - var(--page)) / 2));background:var(--paper);border-bottom:1px solid var(--line);align-items:center;gap:24px;display:flex;position:sticky;top:0}.top .mark{color:var(--ink);font-size:var(--l);white-space:nowrap;align-items:center;gap:10px;text-decoration:none;display:flex}.top .mark b{font-weight:650}.pale{fill:var(--edge)}.top nav{gap:20px;height:100%;display:flex}.top nav a{color:var(--muted);border-top:2px solid #0000;border-bottom:2px solid #0000;align-items:center;text-decoration:none;display:flex}.top nav a:hover{color:var(--ink)}.top nav a[aria-current]{color:var(--ink);border-bottom-color:var(--ink);font-weight:550}.theme{margin-left:auto}.actions[hidden]{display:none}.theme select{color:var(--muted);background:var(--paper);border-color:#0000}main{max-width:var(--page);margin:0 auto;padding:32px 24px 64px}main.narrow{max-width:720px}.notice{border-radius:var(--radius);border:1px solid var(--edge);background:var(--raised);justify-content:space-between;align-items:flex-start;gap:12px;margin:8px 0 16px;padding:10px 14px;display:flex}.notice p{overflow-wrap:anywhere;max-width:90ch}.notice.waiting{background:var(--wait-paper)}.notice.error{background:var(--alarm-paper);border-color:var(--alarm)}.notice button{height:24px}.skeleton,.skeleton .unit-map-frame{background:var(--raised);border-radius:var(--radius)}.intro{margin-bottom:28px}.intro h1{font-size:var(--huge);letter-spacing:-.02em;margin-bottom:12px;line-height:1.1}.intro p{font-size:var(--l);color:var(--muted);max-width:62ch}.intro p+p{margin-top:8px}.running{border-top:1px solid var(--line);padding:16px 0 20px}.running ul{margin-top:6px}.running li{flex-wrap:wrap;gap:4px 12px;padding:4px 0;display:flex}.running span{color:var(--muted)}.columns{grid-template-columns:minmax(0,5fr) minmax(0,6fr);gap:24px 56px;min-height:560px;margin-top:24px;display:grid}.columns.own{grid-template-columns:minmax(0,1fr) minmax(0,1fr)}.pick{min-width:0}.pick input[type=search],.compare>input[type=search]{width:100%;height:40px;margin-bottom:8px}.choices{border-top:1px solid var(--line);border-bottom:1px solid var(--line);max-height:620px;overflow-y:auto}.choices li+li{border-top:1px solid var(--line)}.choices label{cursor:pointer;display:block;position:relative}.choices input{opacity:0;position:absolute}.choices span{border-left:3px solid #0000;padding:10px 12px 10px 14px;display:block}.choices b{font-weight:500;line-height:1.35;display:block}.choices code{color:var(--muted);font-size:var(--s)}.choices span:hover{background:var(--raised)}.choices input:checked+span{border-left-color:var(--ink);background:var(--raised)}.choices input:checked+span b{font-weight:650}.choices input:focus-visible+span{outline:2px solid var(--focus);outline-offset:-2px}.form{flex-direction:column;gap:24px;min-width:0;display:flex}.form h2{font-size:var(--xl);line-height:1.3}.fields{flex-wrap:wrap;gap:12px 16px;display:flex}.fields legend{float:left;width:100%;margin-bottom:0}.fields label,dialog label{color:var(--muted);font-size:var(--s);flex-direction:column;gap:4px;display:flex}.fields select,.fields input,dialog select,dialog input{font-size:var(--m);width:11em}.fields .wide select{width:min(100%,32em)}.fields .wide{width:100%}.chips legend{align-items:baseline;gap:10px;display:flex}.chips legend em{color:var(--muted);font-style:normal;font-weight:400}.chip{cursor:pointer;margin:0 8px 8px 0;display:inline-block;position:relative}.chip input{opacity:0;position:absolute}.chip span{border:1px solid var(--edge);border-radius:99px;padding:5px 12px;display:inline-block}.chip span:hover{border-color:var(--ink)}.chip input:checked+span{background:var(--ink);color:var(--paper);border-color:var(--ink)}.chip input:focus-visible+span{outline:2px solid var(--focus);outline-offset:2px}.begin{border-top:1px solid var(--line);flex-wrap:wrap;justify-content:space-between;align-items:center;gap:12px 24px;padding-top:16px;display:flex}.begin .notice{width:100%;margin:0}.begin p{max-width:48ch}.lane-list li{border-top:1px solid var(--line);grid-template-columns:10em minmax(0,1fr) 28px;align-items:center;gap:10px;padding:5px 0;display:grid}.lane-list ul{border-bottom:1px solid var(--line);margin-bottom:8px}.lane-list li span{color:var(--muted);overflow-wrap:anywhere;font-family:var(--mono);font-size:var(--s)}.lane-list .fields{align-items:flex-end}.editor{border:1px solid var(--edge);border-radius:var(--radius);background:var(--paper);height:520px;overflow:hidden}.editor .cm-editor{height:100%}.editor .cm-scroller{font:13px/1.55 var(--mono)}.editor .cm-editor.cm-focused{outline:2px solid var(--focus);outline-offset:-2px}.editor .cm-gutters{background:var(--raised);color:var(--muted);border-right:1px solid var(--line)}.editor .cm-activeLine,.editor .cm-activeLineGutter{background:color-mix(in srgb, var(--ink) 5%, transparent)}.editor .cm-cursor{border-left-color:var(--ink)}.editor .cm-tooltip{background:var(--paper);color:var(--ink);border:1px solid var(--edge);border-radius:var(--radius);font-size:13px;overflow:hidden}.editor .cm-tooltip-autocomplete ul li[aria-selected]{background:var(--ink);color:var(--paper)}.editor .cm-completionInfo{max-width:320px;padding:8px 10px}.editor .cm-diagnostic-error{border-left-color:var(--alarm)}.problems{color:var(--alarm);min-height:1.5em;margin-top:8px}.upload{border:1px dashed var(--edge);border-radius:var(--radius);text-align:center;height:200px;color:var(--muted);cursor:pointer;place-items:center;padding:24px;display:grid}.upload:hover{border-color:var(--ink)}.upload input{max-width:100%}.run{padding-bottom:40px}.run-head{flex-wrap:wrap;justify-content:space-between;align-items:center;gap:8px 24px;display:flex}.run-head h1{font-size:var(--m);color:var(--muted);text-overflow:ellipsis;min-width:0;min-height:1.3em;font-weight:500;overflow:hidden}.actions{flex-wrap:wrap;gap:8px;display:flex}.export select{width:9.5em;font-weight:550}.headline{border-bottom:1px solid var(--line);grid-template-columns:auto minmax(0,1fr);align-items:baseline;gap:4px 20px;margin-bottom:20px;padding:12px 0 24px;display:grid}.headline .figure{font-size:var(--huge);letter-spacing:-.02em;min-width:3.1em;font-weight:650;line-height:1.15}.headline .sentence{font-size:var(--xl);text-wrap:pretty;min-height:1.35em;line-height:1.35}.lanes{grid-template-columns:repeat(var(--columns,1), minmax(0, 1fr));gap:32px;display:grid}.lanes[data-lanes=\"2\"],.lanes[data-lanes=\"4\"]{--columns:2}.lanes[data-lanes=\"3\"],.lanes[data-lanes=\"5\"],.lanes[data-lanes=\"6\"]{--columns:3}.lanes[data-lanes=\"7\"],.lanes[data-lanes=\"8\"]{--columns:4}.lane{grid-template-columns:minmax(0,1fr);align-content:start;gap:14px;min-width:0;display:grid}.lane-side{grid-template-columns:minmax(0,1fr);align-content:start;gap:16px;display:grid}@media (min-width:1101px){.lanes[data-lanes=\"1\"] .lane{grid-template-columns:minmax(0,1fr) 400px;gap:14px 48px}.lanes[data-lanes=\"1\"] .lane-head{grid-column:1/-1}.lanes[data-lanes=\"1\"] .lane-side{gap:24px;padding-top:4px}}@media (min-width:700px){.lanes[data-lanes=\"1\"] .unit-line{min-height:1.5em}}.lane-head{grid-template-columns:minmax(0,1fr) auto;align-items:baseline;gap:0 16px;display:grid}.lane-name{align-items:center;gap:10px;min-width:0;display:flex}.lane-name h2{text-overflow:ellipsis;white-space:nowrap;font-size:var(--xl);overflow:hidden}.lane-tag{align-items:center;gap:6px;display:inline-flex}.lane-tag b{border:1px solid var(--ink);width:22px;height:22px;font-size:var(--s);border-radius:4px;place-items:center;display:inline-grid}.lane-tag line.ink{stroke:var(--ink)}.lane-tag line.muted{stroke:var(--muted)}.lane-waf{white-space:nowrap}.lane-waf span{color:var(--muted);font-size:var(--s)}.lane-waf b{font-size:var(--xxl);letter-spacing:-.01em;font-weight:650;line-height:1.1}.lane-sub,.lane-phase{color:var(--muted);font-size:var(--s);text-overflow:ellipsis;white-space:nowrap;overflow:hidden}.lane-phase{text-align:right}.lane-phase[data-phase=failed]{color:var(--alarm)}.unit-map-frame{touch-action:pan-y;position:relative;overflow:hidden}.unit-map-frame canvas{width:100%;height:100%;image-rendering:pixelated;position:absolute;inset:0 auto auto 0}.unit-map-frame .above{pointer-events:none}.region{height:24px;font-size:var(--s);color:var(--muted);pointer-events:none;white-space:nowrap;align-items:center;gap:6px;display:flex;position:absolute;left:0;right:0;overflow:hidden}.region b{color:var(--ink);font-weight:550}.region em{font-style:normal}.region span{margin-left:auto}.swatch{border-radius:2px;flex:none;width:10px;height:10px;display:inline-block}.swatch.free{background:var(--free);box-shadow:inset 0 0 0 1px var(--edge)}.swatch.key{background:var(--edge)}.swatch.key.dead{opacity:.35}.swatch.key.open,.swatch.key.collecting{background:var(--free);box-shadow:inset 0 0 0 2px var(--ink)}.swatch.key.collecting{box-shadow:none;border:2px dotted var(--ink)}.unit-line{min-height:3em;font-size:var(--s);color:var(--muted);margin-top:6px}.unit-line b{color:var(--ink)}.legend{font-size:var(--s);color:var(--muted);flex-wrap:wrap;gap:2px 16px;margin-left:auto;display:flex}.legend span{white-space:nowrap}.legend .key{margin-right:3px}.free-units{grid-template-columns:minmax(0,1fr) auto;gap:4px 12px;display:grid}.free-units p{font-size:var(--s);color:var(--muted)}.free-units p b{color:var(--ink);font-size:var(--m)}.free-units .marks{text-align:right}.free-units .gauge{background:var(--free);border-radius:2px;grid-area:2/1/auto/-1;height:10px;position:relative}.gauge .level{background:var(--muted);border-radius:2px;position:absolute;inset:0 auto 0 0}.free-units[data-level=foreground] .level{background:var(--alarm)}.gauge .mark{background:var(--ink);width:2px;margin-left:-1px;position:absolute;top:-3px;bottom:-3px}.scroll{min-width:0;overflow-x:auto}.scroll.tall{max-height:70vh;overflow:auto}table.numbers{border-collapse:collapse;width:100%;font-size:var(--m)}.numbers th,.numbers td{text-align:right;white-space:nowrap;padding:4px 0 4px 12px;font-weight:400}.numbers th:first-child,.numbers td:first-child,.numbers th.text,.numbers td.text{text-align:left}.numbers th:first-child,.numbers td:first-child{padding-left:0}.lane .numbers{font-size:.8125rem}.lane .numbers th,.lane .numbers td{padding-left:6px}.lane .numbers th:first-child{padding-left:0}.numbers thead th{color:var(--muted);font-size:var(--s);border-bottom:1px solid var(--line)}.numbers tbody tr+tr>*{border-top:1px solid var(--line)}.numbers .quiet-row>*{color:var(--muted)}.facts{flex-wrap:wrap;justify-content:space-between;gap:8px 16px;display:flex}.facts dt{font-size:var(--s);color:var(--muted)}.facts dd{min-width:3.6em}.findings li{border-left:3px solid var(--edge);font-size:var(--s);margin-top:4px;padding:2px 0 2px 10px}.below{border-top:1px solid var(--line);grid-template-columns:minmax(0,3fr) minmax(0,2fr);gap:32px 48px;margin-top:36px;padding-top:24px;display:grid}.curves,.events,.hosts{min-width:0}.events select{max-width:12em}.hosts{margin-bottom:28px}.plot{width:100%}.plot .uplot,.plot .u-wrap{font-family:var(--sans)}.plot .u-legend{text-align:left;font-size:var(--s);color:var(--ink);line-height:1.6}.plot .u-legend th{font-weight:400}.plot .u-legend .u-marker{vertical-align:middle;width:18px;border-width:2px 0 0!important;height:0!important}.plot .u-legend .u-value{min-width:3.6em;display:inline-block}.plot .u-hz .u-cursor-x{border-right:1px dashed var(--muted)}.plot .u-hz .u-cursor-y{border-bottom:1px dashed var(--muted)}.log{border-top:1px solid var(--line);height:292px;font-size:var(--s);overflow-y:auto}.log li{border-bottom:1px solid var(--line);grid-template-columns:3.2em 10px minmax(0,1fr);align-items:baseline;gap:10px;padding:5px 0;display:grid}.log li.empty{display:block}.log .when{color:var(--muted);text-align:right}.log .what{overflow-wrap:anywhere;color:var(--muted)}.log .what b{color:var(--ink);font-weight:550;display:block}.events .note{font-size:var(--s);margin-top:6px}.transport{z-index:4;background:var(--paper);border-top:1px solid var(--line);grid-template-columns:auto auto minmax(0,1fr) auto auto;align-items:center;gap:16px;margin-top:32px;padding:10px 0;display:grid;position:sticky;bottom:0}.transport .play{background:var(--ink);width:44px;height:44px;color:var(--paper);border-color:var(--ink);border-radius:50%;place-items:center;padding:0;display:grid}.transport .play:disabled{background:var(--raised);color:var(--muted);border-color:var(--line)}.play path{fill:currentColor}.steps{display:flex}.steps button{border-radius:0;margin-left:-1px;padding:0 9px;font-weight:400}.steps button:first-child{border-radius:var(--radius) 0 0 var(--radius)}.steps button:last-child{border-radius:0 var(--radius) var(--radius) 0}.slider{align-items:center;height:32px;display:flex;position:relative}.slider input{appearance:none;cursor:pointer;background:0 0;width:100%;height:32px;margin:0}.slider input::-webkit-slider-runnable-track{background:linear-gradient(to right, var(--ink) var(--at,0%), var(--line) var(--at,0%));border-radius:3px;height:6px}.slider input::-moz-range-track{background:linear-gradient(to right, var(--ink) var(--at,0%), var(--line) var(--at,0%));border-radius:3px;height:6px}.slider input::-webkit-slider-thumb{appearance:none;background:var(--paper);border:2px solid var(--ink);border-radius:50%;width:18px;height:18px;margin-top:-6px}.slider input::-moz-range-thumb{background:var(--paper);border:2px solid var(--ink);border-radius:50%;width:14px;height:14px}.fork-mark{background:var(--ink);pointer-events:none;width:2px;height:8px;position:absolute;top:2px}.position{white-space:nowrap;color:var(--muted);min-width:12.5em}.position b{color:var(--ink);text-align:right;min-width:2.4em;display:inline-block}.speed select{width:7.6em}dialog{border:1px solid var(--edge);background:var(--paper);width:min(440px,100vw - 32px);color:var(--ink);border-radius:10px;padding:24px}dialog::backdrop{background:#00000073}dialog form{gap:14px;display:grid}dialog select,dialog input{width:100%;height:36px}.buttons{gap:8px;display:flex}.tour{max-width:820px}.tour h1{font-size:var(--huge);letter-spacing:-.02em;line-height:1.1}.stories{border-top:1px solid var(--line);margin-top:28px}.motif rect.none{fill:var(--free)}.stories a{border-bottom:1px solid var(--line);color:var(--ink);grid-template-columns:44px 112px minmax(0,1fr);align-items:center;padding:18px 8px 18px 0;text-decoration:none;display:grid}.stories a:hover{background:var(--raised)}.stories .ordinal{font-size:var(--xxl);color:var(--muted);padding-left:8px;line-height:1}.stories b{font-size:var(--xl);font-weight:650;line-height:1.3;display:block}.stories em{color:var(--muted);font-style:normal}.caption{z-index:4;background:var(--ink);width:min(560px,100%);color:var(--paper);border-radius:10px;margin:24px auto 0;padding:16px 20px;position:sticky;bottom:76px}.caption-title{font-size:var(--s);justify-content:space-between;gap:16px;display:flex}.caption-title b{font-weight:550}.caption-text{font-size:var(--l);min-height:4.35em;margin:6px 0 12px;line-height:1.45}.caption-bar{align-items:center;gap:8px;display:flex}.caption button{color:var(--paper);border-color:color-mix(in srgb, var(--paper) 55%, var(--ink));background:0 0}.caption button:disabled{color:color-mix(in srgb, var(--paper) 60%, var(--ink))}.caption button.primary{background:var(--paper);color:var(--ink)}.caption a{color:var(--paper);margin-left:auto}.pointed-at{outline:2px solid var(--focus);outline-offset:8px;border-radius:2px}.compare>input[type=search]{max-width:480px;margin-top:20px}.beside-hint{color:var(--muted);padding:4px 0 12px}.beside{background:var(--raised);border-radius:var(--radius);margin:4px 0 20px;padding:8px 16px}@media (max-width:1100px){.lanes{--columns:2!important}.lanes[data-lanes=\"1\"],.lanes[data-lanes=large]{--columns:1!important}.below{grid-template-columns:minmax(0,1fr)}}@media (max-width:820px){main{padding:20px 16px 48px}.top{gap:16px;padding:0 16px}.columns,.columns.own{grid-template-columns:minmax(0,1fr)}.choices{max-height:300px}.lanes{gap:40px;--columns:1!important}.intro h1,.tour h1{font-size:2rem}.transport{grid-template-columns:auto minmax(0,1fr) auto;gap:4px 10px;margin-inline:-16px;padding:8px 16px}.transport .slider{grid-row:1}.transport .position{text-align:right;grid-area:1/3;min-width:7em}.transport .position span{display:none}.transport .slider{grid-column:1/3}.transport .speed{grid-area:2/3}.transport .speed select{width:7em}.caption{padding:12px 14px;bottom:104px}.caption-text{min-height:5.8em;font-size:var(--m)}}@media (max-width:480px){.top .mark span{display:none}.top nav{gap:16px}.headline{grid-template-columns:minmax(0,1fr)}.headline .sentence{font-size:var(--l);min-height:4.05em}.theme select{width:7em}.numbers th,.numbers td{padding-left:8px}.facts{gap:8px 16px}.lane-list li{grid-template-columns:minmax(0,1fr) 28px}.lane-list li span{grid-area:2/1/auto/-1}}@media (prefers-reduced-motion:reduce){*{scroll-behavior:auto!important;transition:none!important}}.widget{padding:4px 2px}.widget .curves{margin-top:32px}";
// src/widget.tsx
function Zc({ session: e }) {
	let t = H(!1), n = e.connection.value;
	return /* @__PURE__ */ G("div", {
		class: "run widget",
		children: [
			/* @__PURE__ */ G("div", {
				class: "run-head",
				children: [/* @__PURE__ */ G("h1", { children: e.title.value }), /* @__PURE__ */ G("div", {
					class: "actions",
					children: /* @__PURE__ */ G("button", {
						type: "button",
						onClick: () => t.value = !0,
						children: "Fork from here"
					})
				})]
			}),
			n === "lost" && /* @__PURE__ */ G(oc, {
				kind: "waiting",
				children: "The engine does not answer; this is the last picture."
			}),
			n === "gone" && /* @__PURE__ */ G(oc, {
				kind: "waiting",
				children: "This run has ended. Run the cell again to begin it anew."
			}),
			e.problem.value !== null && /* @__PURE__ */ G(oc, {
				kind: "error",
				children: e.problem.value
			}),
			/* @__PURE__ */ G(Tc, { session: e }),
			/* @__PURE__ */ G(Ec, { session: e }),
			/* @__PURE__ */ G(Vs, { session: e }),
			/* @__PURE__ */ G(ac, {
				session: e,
				open: t
			}),
			/* @__PURE__ */ G(Nc, { session: e })
		]
	});
}
async function Qc(e, t) {
	let n = new Ic(String(e.get("url") ?? ""), e.get("token") || null), r = e.get("order"), i = e.get("session"), a = i || (r ? await n.begin(r) : null);
	if (a === null) throw Error("Nothing to show: the widget has neither an order nor a session.");
	let o = Jc.of(n, a);
	return F(/* @__PURE__ */ G(Zc, { session: o }), t), () => {
		F(null, t), o.close(), i || n.end(a).catch(() => {});
	};
}
var $c = { render({ model: e, el: t }) {
	let n = t.attachShadow({ mode: "open" }), r = document.createElement("style");
	r.textContent = Yc + Xc;
	let i = document.createElement("div");
	i.className = "warp-studio", n.append(r, i);
	let a = null, o = !1;
	return Qc(e, i).then((e) => {
		o ? e() : a = e;
	}, (e) => {
		i.textContent = e instanceof Error ? e.message : String(e);
	}), () => {
		o = !0, a?.();
	};
} };
export { $c as default };

//! Transactions like TPC-C's (standard specification, revision 5.11), as the pages that they touch.
//!
//! Tables lie one after another, each sorted by warehouse. Some have updated rows (warehouse and
//! district, customer, stock). Order lines lie in one ring per district. New orders are appended,
//! and the oldest are dropped, as in runs that delete delivered orders. The model omits item,
//! history and the index of names.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::page_access::Touch;
use workload::random::below;

/// Rows of a warehouse, and their bytes (clauses 1.2.1 and 1.3.1).
const DISTRICTS: u64 = 10;
const DISTRICT_BYTES: u64 = 95;
const CUSTOMERS: u64 = 30_000;
const CUSTOMER_BYTES: u64 = 655;
const STOCK: u64 = 100_000;
const STOCK_BYTES: u64 = 306;
/// Initial orders of a district, and bytes of an order (order, new order and ten lines).
const ORDERS: u64 = 3_000;
const ORDER_BYTES: u64 = 24 + 8 + 10 * 54;
/// Average number of lines of an order (clause 2.4.1.3, 5 to 15).
const LINES: u64 = 10;

struct TpccTable {
    first_page: u32,
    rows_per_page: u64,
}

impl TpccTable {
    fn page(&self, row: u64) -> u32 {
        self.first_page + (row / self.rows_per_page) as u32
    }
}

pub(super) struct Tpcc {
    random: Xoshiro256PlusPlus,
    warehouses: u64,
    districts: TpccTable,
    customers: TpccTable,
    stock: TpccTable,
    /// First page of the orders. Each district has a ring.
    orders_page: u32,
    ring_pages: u32,
    orders_per_page: u64,
    /// Number of orders so far by district.
    orders: Vec<u64>,
}

impl Tpcc {
    /// Creates as many warehouses as fit into `pages` pages. If none fits, returns the pages that
    /// one needs.
    pub(super) fn new(page_bytes: u64, pages: u32, seed: u64) -> Result<Tpcc, u64> {
        let rows = |bytes: u64| (page_bytes / bytes).max(1);
        let of = |rows_in_all: u64, bytes: u64| rows_in_all.div_ceil(rows(bytes));
        let orders_per_page = rows(ORDER_BYTES);
        // A warehouse and its districts share one page, which is the point of contention.
        let warehouse_pages = |warehouses: u64| {
            warehouses
                + of(warehouses * CUSTOMERS, CUSTOMER_BYTES)
                + of(warehouses * STOCK, STOCK_BYTES)
                + warehouses * DISTRICTS * of(ORDERS, ORDER_BYTES)
        };
        // Each table begins on its own page.
        let warehouses = u64::from(pages).saturating_sub(2) / warehouse_pages(1);
        if warehouses == 0 {
            return Err(warehouse_pages(1) + 2);
        }
        let districts = TpccTable { first_page: 0, rows_per_page: rows(DISTRICT_BYTES).min(DISTRICTS + 1) };
        let customers = TpccTable { first_page: warehouses as u32, rows_per_page: rows(CUSTOMER_BYTES) };
        let stock =
            TpccTable { first_page: customers.page(warehouses * CUSTOMERS) + 1, rows_per_page: rows(STOCK_BYTES) };
        let orders_page = stock.page(warehouses * STOCK) + 1;
        let ring_pages = (pages - orders_page) / (warehouses * DISTRICTS) as u32;
        Ok(Tpcc {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            warehouses,
            districts,
            customers,
            stock,
            orders_page,
            ring_pages,
            orders_per_page,
            orders: vec![0; (warehouses * DISTRICTS) as usize],
        })
    }

    /// TPC-C's non-uniform random number of 0..`most` (clause 2.1.6), with C = 0.
    fn non_uniform(&mut self, spread: u64, most: u64) -> u64 {
        (below(&mut self.random, spread + 1) | below(&mut self.random, most)) % most
    }

    /// Next transaction: 45 % new orders, 43 % payments, 4 % of each other kind (clause 5.2.3).
    pub(super) fn next(&mut self, touches: &mut Vec<Touch>) {
        let warehouse = below(&mut self.random, self.warehouses);
        let district = warehouse * DISTRICTS + below(&mut self.random, DISTRICTS);
        match self.random.next_u64() % 100 {
            0..45 => self.new_order(warehouse, district, touches),
            45..88 => self.payment(warehouse, district, touches),
            88..92 => self.delivery(warehouse, touches),
            92..96 => {
                let customer = self.customer(district);
                touches.push(read(self.customers.page(customer)));
                touches.push(read(self.order_page(district, 1)));
            }
            _ => {
                touches.push(read(self.district_page(district)));
                for _ in 0..2 * LINES {
                    let row = warehouse * STOCK + below(&mut self.random, STOCK);
                    touches.push(read(self.stock.page(row)));
                }
            }
        }
    }

    fn new_order(&mut self, warehouse: u64, district: u64, touches: &mut Vec<Touch>) {
        touches.push(changed(self.district_page(district), DISTRICT_BYTES));
        let customer = self.customer(district);
        touches.push(read(self.customers.page(customer)));
        for _ in 0..LINES {
            let home = below(&mut self.random, 100) > 0;
            let supplier = if home { warehouse } else { below(&mut self.random, self.warehouses) };
            let row = supplier * STOCK + self.non_uniform(8191, STOCK);
            touches.push(changed(self.stock.page(row), STOCK_BYTES));
        }
        self.orders[district as usize] += 1;
        touches.push(changed(self.order_page(district, 1), ORDER_BYTES));
    }

    fn payment(&mut self, warehouse: u64, district: u64, touches: &mut Vec<Touch>) {
        touches.push(changed(self.district_page(district), DISTRICT_BYTES));
        let home = below(&mut self.random, 100) < 85;
        let other = below(&mut self.random, self.warehouses);
        let of = if home { warehouse } else { other } * DISTRICTS + district % DISTRICTS;
        let customer = self.customer(of);
        touches.push(changed(self.customers.page(customer), CUSTOMER_BYTES));
    }

    /// Delivers the oldest undelivered order of every district, about 900 orders back (clause
    /// 4.3.3.1).
    fn delivery(&mut self, warehouse: u64, touches: &mut Vec<Touch>) {
        for district in warehouse * DISTRICTS..(warehouse + 1) * DISTRICTS {
            touches.push(changed(self.order_page(district, 900), ORDER_BYTES));
            let customer = self.customer(district);
            touches.push(changed(self.customers.page(customer), CUSTOMER_BYTES));
        }
    }

    fn customer(&mut self, district: u64) -> u64 {
        let of_district = CUSTOMERS / DISTRICTS;
        district * of_district + self.non_uniform(1023, of_district)
    }

    fn district_page(&self, district: u64) -> u32 {
        self.districts.page(district / DISTRICTS * self.districts.rows_per_page)
    }

    /// Page of the order that is `back` orders back. The newest has 1.
    fn order_page(&self, district: u64, back: u64) -> u32 {
        let order = self.orders[district as usize].saturating_sub(back);
        let page = order / self.orders_per_page % u64::from(self.ring_pages);
        self.orders_page + (district * u64::from(self.ring_pages) + page) as u32
    }
}

fn read(page: u32) -> Touch {
    changed(page, 0)
}

fn changed(page: u32, changed_bytes: u64) -> Touch {
    Touch { page, changed_bytes }
}

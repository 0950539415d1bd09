#[at_most_once(reason = "a late reading is worthless", loss = "one reading in the chart")]
async fn plot(msg: &Reading, chart: &Chart) -> Result<(), ChartError> {
    chart.plot(msg.at, msg.value).await
}
